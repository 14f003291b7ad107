//! Counts of missing, unknown and out-of-range values in the metrics.

use std::time::Duration;

use estimand_serve::{BatchingParameters, Running};

use crate::models::{described, rest, served, server};

/// The value of a metric of a column of version 7.
fn metric(running: &Running, name: &str, column: &str) -> Option<f64> {
    let page = rest(running).get("/monitoring/prometheus/metrics").text();
    let start = format!("estimand_{name}{{model_name=\"flats\",version=\"7\",column=\"{column}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.parse().unwrap())
}

const PREDICT: &str = "/v1/models/flats:predict";

/// By hand: sizes of the training are 20 to 135.
#[test]
fn values_are_counted_once() {
    let folder = served(described(), 7);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let body = r#"{"instances": [{"size": 19.0, "city": "Paris"}, {"size": 140.0}, {"city": "Oslo"},
                                 {"size": NaN, "city": ""}, {"size": 100.0, "city": "Paris"}]}"#;
    assert_eq!(client.post(PREDICT, body).status, 200);
    // A request that fails is not counted.
    assert_eq!(client.post(PREDICT, r#"{"instances": [{"size": "x", "city": "Paris"}]}"#).status, 400);
    let of = |name: &str, column: &str| metric(&running, name, column);
    // The default of the third row is a value too.
    assert_eq!(of("column_values_total", "size"), Some(4.0));
    assert_eq!(of("column_missing_total", "size"), Some(2.0));
    assert_eq!(of("column_out_of_range_total", "size"), Some(2.0));
    assert_eq!(of("column_mean", "size"), Some((19.0 + 140.0 + 50.0 + 100.0) / 4.0));
    assert_eq!(of("column_values_total", "city"), Some(3.0));
    assert_eq!(of("column_missing_total", "city"), Some(2.0));
    assert_eq!(of("column_unknown_total", "city"), Some(2.0));
    assert_eq!((of("column_unknown_total", "size"), of("column_out_of_range_total", "city")), (None, None));
    assert_eq!((of("training_min", "size"), of("training_max", "size")), (Some(20.0), Some(135.0)));
    assert_eq!(of("training_missing_ratio", "city"), Some(0.0));
    assert_eq!(of("column_drift", "size"), None, "five values say nothing");

    // Examples count to the same columns.
    let body =
        r#"{"signature_name": "classification", "examples": [{"size": 500.0, "city": "Paris"}, {"size": 50.0}]}"#;
    assert_eq!(client.post("/v1/models/flats:classify", body).status, 200);
    assert_eq!(of("column_values_total", "size"), Some(6.0));
    assert_eq!(of("column_out_of_range_total", "size"), Some(3.0));
    assert_eq!(of("column_unknown_total", "city"), Some(3.0));
}

/// The values of the training do not drift; others do.
#[test]
fn drift_is_a_number() {
    let folder = served(described(), 7);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let rows = |size: &dyn Fn(usize) -> usize, city: &dyn Fn(usize) -> &'static str| {
        let row = |i: usize| format!("{{\"size\": {}.0, \"city\": \"{}\"}}", size(i), city(i));
        format!("{{\"instances\": [{}]}}", (0..600).map(row).collect::<Vec<_>>().join(","))
    };
    let cities = |i: usize| ["Rome", "Oslo", "Bergen"][i % 3];
    assert_eq!(client.post(PREDICT, &rows(&|i| 20 + (i % 60) * 37 % 120, &cities)).status, 200);
    let before = ["size", "city"].map(|column| metric(&running, "column_drift", column).unwrap());
    assert!(before.iter().all(|drift| *drift < 0.05), "{before:?}");
    assert_eq!(client.post(PREDICT, &rows(&|i| 130 + i % 9, &|_| "Paris")).status, 200);
    let after = ["size", "city"].map(|column| metric(&running, "column_drift", column).unwrap());
    assert!(after.iter().all(|drift| *drift > 0.2), "{after:?}");
}

/// Rows of joined requests count once each, whatever the batches are.
#[test]
fn joined_requests_count_once() {
    let folder = served(described(), 7);
    let batching = BatchingParameters::new().max_batch_size(8).batch_timeout(Duration::from_millis(2));
    let running = server().batching(batching).model("flats", folder.path()).start().unwrap();
    std::thread::scope(|threads| {
        for thread in 0..6 {
            let running = &running;
            threads.spawn(move || {
                let mut client = rest(running);
                for i in 0..20 {
                    let city = if (i + thread) % 4 == 0 { "\"Paris\"" } else { "\"Oslo\"" };
                    let body = format!(r#"{{"instances": [{{"size": 500.0, "city": {city}}}, {{"city": null}}]}}"#);
                    assert_eq!(client.post(PREDICT, &body).status, 200);
                }
            });
        }
    });
    let of = |name: &str, column: &str| metric(&running, name, column);
    assert_eq!(of("column_out_of_range_total", "size"), Some(120.0));
    assert_eq!(of("column_missing_total", "size"), Some(120.0));
    assert_eq!(of("column_missing_total", "city"), Some(120.0));
    assert_eq!(of("column_unknown_total", "city"), Some(30.0));
}
