//! The page at `/`. A real browser opens it in `oracles/live/serve_page.py`.

use serde_json::json;

use crate::models::{described, rest, served, server};

/// The page has all that it needs, and its data say what there is.
#[test]
fn the_page_and_its_data() {
    let folder = served(described(), 3);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let page = client.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    for outside in ["http://", "https://", "//cdn", "@import", "src="] {
        let text = page.text().replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains(outside), "{outside}");
    }
    let body = r#"{"instances": [{"size": 500.0, "city": "Paris"}, {}]}"#;
    assert_eq!(client.post("/v1/models/flats:predict", body).status, 200);
    let data = client.get("/page/data").json();
    assert_eq!(data["is_ready"], true);
    let model = &data["models"][0];
    assert_eq!((&model["name"], &model["served"]), (&json!("flats"), &json!("3")));
    assert_eq!(model["versions"], json!([{"version": "3", "state": "AVAILABLE", "error": null}]));
    let signatures = model["signatures"].as_array().unwrap();
    let default = signatures.iter().find(|one| one["name"] == "serving_default").unwrap();
    let city = &default["inputs"][0];
    assert_eq!(
        (&city["name"], &city["has_default"], &city["type"]),
        (&json!("city"), &json!(true), &json!("string[-1]"))
    );
    assert_eq!((&city["example"], &default["is_explained"]), (&json!("\"Rome\""), &json!(true)));
    let latency = &model["latencies"][0];
    assert_eq!((&latency["api"], &latency["entry"], &latency["count"]), (&json!("Predict"), &json!("REST"), &json!(1)));
    assert_eq!(latency["counts"].as_array().unwrap().len(), latency["limits"].as_array().unwrap().len() + 1);
    let column =
        |name: &str| model["columns"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!((&column("size")["out_of_range"], &column("size")["missing"]), (&json!(1), &json!(1)));
    assert_eq!((&column("city")["unknown"], &column("size")["training_range"]), (&json!(1), &json!([20.0, 135.0])));
}
