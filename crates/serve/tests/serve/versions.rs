//! Versions come, go and fail while requests are answered.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use estimand_serve::{ModelConfig, Running, State, VersionPolicy};

use crate::models::{Folder, classifier, copy, publish, rest, served, server};

const BODY: &str = r#"{"instances": [{"size": 80.0, "city": "Oslo"}]}"#;

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Versions in a state, ascending.
fn versions(running: &Running, state: State) -> Vec<i64> {
    let mut all: Vec<i64> =
        running.versions("flats").unwrap().iter().filter(|one| one.state == state).map(|one| one.version).collect();
    all.sort_unstable();
    all
}

fn available(running: &Running) -> Vec<i64> {
    versions(running, State::Available)
}

/// The answer of a version, by which versions are told apart.
fn answer(running: &Running, path: &str) -> String {
    let reply = rest(running).post(&format!("/v1/models/flats{path}:predict"), BODY);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

/// A new version takes over, the old one ends, a removed one gives way to the one before it, and
/// folders of other names are ignored.
#[test]
fn the_newest_version_is_served() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let first = answer(&running, "");
    for other in ["temp-9", "9.tmp", "nine", "-9", "assets"] {
        copy(classifier(1), &folder.path().join(other));
    }
    fs::write(folder.path().join("99"), "a file is no version").unwrap();
    publish(classifier(1), folder.path(), 2);
    until("the swap", || available(&running) == [2]);
    let second = answer(&running, "");
    assert_ne!(first, second);
    until("the end of version 1", || versions(&running, State::End) == [1]);
    assert_eq!(rest(&running).post("/v1/models/flats/versions/1:predict", BODY).status, 404);

    fs::remove_dir_all(folder.path().join("2")).unwrap();
    until("the way back", || available(&running) == [1]);
    assert_eq!(answer(&running, ""), first);
    // Without any version the last one goes on answering.
    fs::remove_dir_all(folder.path().join("1")).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(answer(&running, ""), first);
    publish(classifier(1), folder.path(), 30);
    until("version 30", || available(&running) == [30]);
    assert_eq!(answer(&running, ""), second);
}

#[test]
fn policies_and_labels() {
    let folder = Folder::new();
    for version in 1..=4 {
        publish(classifier(version as u64 % 2), folder.path(), version);
    }
    let start = |policy: VersionPolicy| {
        let model = ModelConfig::new("flats", folder.path()).policy(policy).label("stable", 3).label("gone", 77);
        server().model_config(model).start().unwrap()
    };
    assert_eq!(available(&start(VersionPolicy::All)), [1, 2, 3, 4]);
    assert_eq!(available(&start(VersionPolicy::Specific(vec![2, 9]))), [2]);
    let running = start(VersionPolicy::Latest(2));
    assert_eq!(available(&running), [3, 4]);
    assert_eq!(answer(&running, "/labels/stable"), answer(&running, "/versions/3"));
    assert_ne!(answer(&running, "/labels/stable"), answer(&running, ""));
    let reply = rest(&running).post("/v1/models/flats/labels/gone:predict", BODY);
    assert_eq!((reply.status, reply.error().contains("Specific(flats, 77)")), (404, true));
    publish(classifier(1), folder.path(), 5);
    until("version 5", || available(&running) == [4, 5]);
}

/// Breaks an export in a way that its reader must find.
fn damage(folder: &Path, part: &str) {
    let path = folder.join(part);
    let mut bytes = fs::read(&path).unwrap();
    let n = bytes.len();
    match part {
        "saved_model.pb" => bytes.truncate(n / 2),
        _ => bytes[n / 2] ^= 0xff,
    }
    fs::write(path, bytes).unwrap();
}

/// A damaged version is not served, the old one is, and the status tells why. When its files change
/// it is tried again at once.
#[test]
fn a_version_that_cannot_be_loaded_leaves_the_old_one() {
    for part in ["saved_model.pb", "variables/variables.data-00000-of-00001", "variables/variables.index"] {
        let folder = served(classifier(0), 1);
        let running = server().model("flats", folder.path()).start().unwrap();
        let first = answer(&running, "");
        let broken = Folder::new();
        copy(classifier(1), broken.path());
        damage(broken.path(), part);
        publish(broken.path(), folder.path(), 2);
        until("the failure", || versions(&running, State::End) == [2]);
        assert_eq!((available(&running), answer(&running, "")), (vec![1], first.clone()), "{part}");
        let reply = rest(&running).get("/v1/models/flats/versions/2").json();
        let status = &reply["model_version_status"][0];
        assert_eq!((&status["state"], &status["status"]["error_code"]), (&"END".into(), &"FAILED_PRECONDITION".into()));
        assert!(!status["status"]["error_message"].as_str().unwrap().is_empty());

        // A slow copy looks damaged until it is complete.
        copy(classifier(1), &folder.path().join("2"));
        until("the repair", || available(&running) == [2]);
        assert_ne!(answer(&running, ""), first);
    }
}

/// The export carries rows with the answers of the model. A version with the weights of another
/// model is whole, but refused, unless the server is told otherwise.
#[test]
fn a_version_that_answers_differently_is_refused() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let first = answer(&running, "");
    let mixed = Folder::new();
    copy(classifier(1), mixed.path());
    for name in ["variables.index", "variables.data-00000-of-00001"] {
        fs::copy(classifier(0).join("variables").join(name), mixed.path().join("variables").join(name)).unwrap();
    }
    publish(mixed.path(), folder.path(), 2);
    until("the refusal", || versions(&running, State::End) == [2]);
    assert_eq!((available(&running), answer(&running, "")), (vec![1], first.clone()));
    let reply = rest(&running).get("/v1/models/flats/versions/2").json();
    let message = reply["model_version_status"][0]["status"]["error_message"].as_str().unwrap().to_string();
    assert!(message.contains("answers differently from the model"), "{message}");
    assert!(message.contains("row 0: expected"), "{message}");

    let running = server().accept_changed_answers().model("flats", folder.path()).start().unwrap();
    until("the version", || available(&running) == [2]);
    assert_eq!(answer(&running, ""), first, "the weights are those of the first version");
}

/// A folder that appears later, and models that never load: the server runs, and says why.
#[test]
fn models_that_are_missing() {
    let folder = Folder::new();
    let later = folder.path().join("later");
    let broken = served(classifier(0), 1);
    fs::remove_file(broken.path().join("1/saved_model.pb")).unwrap();
    let running = server().model("flats", &later).model("broken", broken.path()).start().unwrap();
    assert!(!running.is_ready());
    let mut client = rest(&running);
    assert_eq!(client.get("/healthz").status, 503);
    let reply = client.post("/v1/models/flats:predict", BODY);
    assert_eq!((reply.status, reply.error().as_str()), (404, "Servable not found for request: Latest(flats)"));
    let reply = client.post("/v1/models/broken:predict", BODY);
    assert!(reply.error().contains("version 1 could not be loaded") && reply.error().contains("saved_model.pb"));
    copy(classifier(0), &broken.path().join("1"));
    fs::create_dir(&later).unwrap();
    publish(classifier(0), &later, 5);
    until("both models", || running.is_ready());
    assert_eq!(client.get("/healthz").status, 200);
    assert_eq!(answer(&running, ""), answer(&running, "/versions/5"));
}

/// Two versions swap all the time while four clients ask: no request fails, each answer is that of
/// one of the versions, and old versions are dropped.
#[test]
fn swaps_fail_no_request() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let answers = [answer(&running, ""), {
        publish(classifier(1), folder.path(), 2);
        until("version 2", || available(&running) == [2]);
        answer(&running, "")
    }];
    let (is_over, n_answers) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut client = rest(&running);
                while !is_over.load(Ordering::Relaxed) {
                    let reply = client.post("/v1/models/flats:predict", BODY);
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    assert!(answers.contains(&reply.text()));
                    n_answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for version in 3..15 {
            publish(classifier((version % 2) as u64), folder.path(), version);
            until("a swap", || available(&running) == [version]);
            fs::remove_dir_all(folder.path().join((version - 1).to_string())).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(n_answers.load(Ordering::Relaxed) > 100);
    until("the end of old versions", || versions(&running, State::Unloading).is_empty());
    assert_eq!(available(&running), [14]);
}

/// A version every 200 ms under load, for a while. Prints the memory of the process.
fn swap_for(seconds: u64) {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let is_over = AtomicBool::new(false);
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        line.unwrap_or(0.0) / 1024.0
    };
    let n_answers = std::thread::scope(|threads| {
        let clients = [(); 3].map(|()| {
            threads.spawn(|| {
                let mut client = rest(&running);
                let mut n = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let reply = client.post("/v1/models/flats:predict", BODY);
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    n += 1;
                }
                n
            })
        });
        let (start, mut version, mut early) = (Instant::now(), 1, 0.0);
        while start.elapsed() < Duration::from_secs(seconds) {
            version += 1;
            publish(classifier((version % 2) as u64), folder.path(), version);
            std::thread::sleep(Duration::from_millis(200));
            until("a swap", || available(&running) == [version]);
            fs::remove_dir_all(folder.path().join((version - 1).to_string())).unwrap();
            if version == 8 {
                early = resident();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        println!("{version} versions, resident MB after 8: {early:.1}, at the end: {:.1}", resident());
        assert!(version >= 8 && resident() < early + 64.0, "the memory grows");
        clients.into_iter().map(|client| client.join().unwrap()).sum::<u32>()
    });
    println!("{n_answers} answers, none failed");
    assert!(n_answers > 100);
}

#[test]
fn a_version_every_200_ms() {
    swap_for(4);
}

#[test]
#[ignore = "takes a minute: .ci/run asks for it"]
fn a_version_every_200_ms_for_a_minute() {
    swap_for(60);
}

/// A model whose folder moves answers all the time: with the old version until the new one is
/// loaded, also if both have the same number.
#[test]
fn a_folder_that_moves() {
    let (first, second, third) = (served(classifier(0), 1), served(classifier(1), 1), Folder::new());
    let running = server().model("flats", first.path()).start().unwrap();
    let old = answer(&running, "");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let mut client = rest(&running);
            while !is_over.load(Ordering::Relaxed) {
                let reply = client.post("/v1/models/flats:predict", BODY);
                assert_eq!(reply.status, 200, "{}", reply.text());
            }
        });
        running.configure(vec![ModelConfig::new("flats", second.path())]).unwrap();
        until("the other folder", || answer(&running, "") != old);
        // A folder without a version, and then with one.
        running.configure(vec![ModelConfig::new("flats", third.path())]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        publish(classifier(0), third.path(), 7);
        until("version 7", || available(&running) == [7]);
        assert_eq!(answer(&running, ""), old);
        is_over.store(true, Ordering::Relaxed);
        asking.join().unwrap();
    });
}

/// Requests that an export brings along are answered before it is served. A version that cannot
/// answer them is refused.
#[test]
fn warm_up_requests() {
    use crate::messages::{ExampleLog, ExampleRequest, LogKind, ModelSpec, PredictLog, PredictRequest, PredictionLog};
    use estimand::prelude::Array;
    use estimand_wire::record::RecordWriter;
    use estimand_wire::{Message, TensorProto};

    let write = |folder: &Path, logs: &[PredictionLog]| {
        fs::create_dir_all(folder.join("assets.extra")).unwrap();
        let file = fs::File::create(folder.join("assets.extra/tf_serving_warmup_requests")).unwrap();
        let mut writer = RecordWriter::new(file);
        logs.iter().for_each(|log| writer.write(&log.encode_to_vec()).unwrap());
        writer.flush().unwrap();
    };
    let inputs: std::collections::BTreeMap<String, TensorProto> =
        [("size", Array::from([1f32])), ("city", Array::from_strings([1], ["Oslo"]).unwrap())]
            .map(|(name, array)| (name.to_string(), TensorProto::from_array(&array)))
            .into();
    let predict = |inputs| {
        let request = Some(PredictRequest { inputs, ..Default::default() });
        PredictionLog { log_type: Some(LogKind::Predict(PredictLog { request })) }
    };
    let missing = |signature: &str| {
        let model_spec = Some(ModelSpec { signature_name: signature.into(), ..Default::default() });
        let request = Some(ExampleRequest { model_spec, input: None });
        PredictionLog { log_type: Some(LogKind::Regress(ExampleLog { request })) }
    };
    let folder = served(classifier(0), 1);
    write(&folder.path().join("1"), &[predict(inputs.clone()), predict(inputs.clone())]);
    let running = server().model("flats", folder.path()).start().unwrap();
    assert_eq!(available(&running), [1]);
    for (version, logs, text) in [
        (2, vec![predict(inputs.clone()), predict(Default::default())], "Missing but required: {city,size}"),
        (3, vec![missing("no")], "No signature was found with the name: no"),
        (4, vec![PredictionLog { log_type: None }], "cannot be replayed"),
    ] {
        let staged = Folder::new();
        copy(classifier(1), staged.path());
        write(staged.path(), &logs);
        publish(staged.path(), folder.path(), version);
        until("the failure", || versions(&running, State::End).contains(&version));
        let status = running.versions("flats").unwrap().into_iter().find(|one| one.version == version).unwrap();
        let message = status.error.unwrap().message;
        assert!(message.contains(text) && message.contains("in record"), "{message}");
        assert_eq!(available(&running), [1]);
    }
}

/// Models are added, changed and removed while the server runs.
#[test]
fn models_change_while_the_server_runs() {
    let (first, second) = (served(classifier(0), 1), served(classifier(1), 1));
    publish(classifier(1), first.path(), 2);
    let running = server().poll_wait(None).model("flats", first.path()).start().unwrap();
    let policy = VersionPolicy::Specific(vec![1]);
    let flats = ModelConfig::new("flats", first.path());
    running.configure(vec![flats.clone().policy(policy), ModelConfig::new("other", second.path())]).unwrap();
    until("version 1", || available(&running) == [1]);
    until("the other model", || running.versions("other").is_some_and(|all| !all.is_empty()) && running.is_ready());
    running.configure(vec![ModelConfig::new("other", second.path())]).unwrap();
    assert_eq!(rest(&running).post("/v1/models/flats:predict", BODY).status, 404);
    assert_eq!(rest(&running).post("/v1/models/other:predict", BODY).status, 200);
    let twice = running.configure(vec![flats.clone(), flats]).unwrap_err().to_string();
    assert!(twice.contains("two models have the name `flats`"), "{twice}");
    assert_eq!(rest(&running).post("/v1/models/other:predict", BODY).status, 200);
}

/// The program itself: its flags, its file of models that changes, its log, its end.
#[test]
fn the_program() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let (first, second) = (served(classifier(0), 1), served(classifier(1), 1));
    let file = first.path().join("models.config");
    let write = |models: &[(&str, &Path)]| {
        let one =
            |(name, path): &(&str, &Path)| format!("config {{ name: '{name}' base_path: '{}' }}\n", path.display());
        fs::write(&file, format!("model_config_list {{\n{}}}\n", models.iter().map(one).collect::<String>())).unwrap();
    };
    write(&[("flats", first.path())]);
    // A free port; another program could take it before ours does.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut program = Command::new(env!("CARGO_BIN_EXE_estimand-serve"))
        .arg(format!("--model_config_file={}", file.display()))
        .args(["--model_config_file_poll_wait_seconds=0.02", "--port=0", "--rest_api_port", &port.to_string()])
        .args(["--file_system_poll_wait_seconds=0.02", "--enable_batching", "--access_log"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(program.stderr.take().unwrap()).lines();
    let mut lines: Vec<String> = Vec::new();
    let mut read_to = |text: &str, lines: &mut Vec<String>| {
        while !lines.last().is_some_and(|line| line.contains(text)) {
            lines.push(log.next().expect("the program ended").unwrap());
        }
    };
    read_to("REST and gRPC at", &mut lines);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut client = crate::client::Client::new(address);
    assert_eq!(client.post("/v1/models/flats:predict", BODY).status, 200);
    assert_eq!(client.post("/v1/models/more:predict", BODY).status, 404);
    fs::write(&file, "model_config_list { config { nam").unwrap();
    read_to("models stay as they are", &mut lines);
    write(&[("flats", first.path()), ("more", second.path())]);
    until("the other model", || client.post("/v1/models/more:predict", BODY).status == 200);
    // SAFETY: the process is our child, and has not been waited for.
    assert_eq!(unsafe { libc::kill(program.id() as i32, libc::SIGTERM) }, 0);
    assert!(program.wait().unwrap().success());
    lines.extend(log.map_while(Result::ok));
    for text in ["loaded version 1 of model `flats`", "\"POST /v1/models/flats:predict\" 200", "stopping"] {
        assert!(lines.iter().any(|line| line.contains(text)), "{text} is not in {lines:#?}");
    }
    let wrong = Command::new(env!("CARGO_BIN_EXE_estimand-serve")).arg("--prt=1").output().unwrap();
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("did you mean `port`?"));
}
