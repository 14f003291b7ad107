//! TLS, tokens, many connections, and systemd.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use estimand_serve::{Running, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::Client;
use crate::grpc::call;
use crate::messages::{
    GetModelStatusRequest, GetModelStatusResponse, HealthCheckRequest, HealthCheckResponse, ModelSpec,
};
use crate::models::{Folder, classifier, rest, served, server};

const BODY: &str = r#"{"instances": [{"size": 1.0, "city": "Oslo"}]}"#;

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/download").join(name)
}

/// A connection that trusts our authority; `is_known` presents a certificate of it too.
fn connect(address: SocketAddr, is_known: bool) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("authority.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match is_known {
        false => config.with_no_client_auth(),
        true => {
            let certificate = CertificateDer::from_pem_file(pem("server.pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(pem("server_key.pem")).unwrap();
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(StreamOwned::new(connection, stream))
}

/// The status line of a prediction over TLS.
fn predict(address: SocketAddr, is_known: bool) -> std::io::Result<String> {
    let mut stream = connect(address, is_known)?;
    let head =
        format!("POST /v1/models/flats:predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", BODY.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(BODY.as_bytes())?;
    let mut reply = vec![0; 15];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8(reply).unwrap())
}

fn tls() -> Tls {
    let read = |name: &str| std::fs::read(pem(name)).unwrap();
    Tls::from_pem(&read("server.pem"), &read("server_key.pem")).unwrap()
}

#[test]
fn connections_are_encrypted() {
    let folder = served(classifier(0), 1);
    let limit = Duration::from_millis(300);
    let running = server().tls(tls()).head_timeout(limit).model("flats", folder.path()).start().unwrap();
    let address = running.rest_address().unwrap();
    assert_eq!(predict(address, false).unwrap(), "HTTP/1.1 200 OK");
    // A client that does not encrypt, and one that says nothing, are let go.
    for first in [&b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"[..], b""] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(first).unwrap();
        let mut reply = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut reply);
        assert!(!reply.starts_with(b"HTTP"), "{reply:?}");
    }
    assert_eq!(predict(address, false).unwrap(), "HTTP/1.1 200 OK");
}

#[test]
fn clients_need_a_certificate() {
    let folder = served(classifier(0), 1);
    let tls = tls().client_authority(&std::fs::read(pem("authority.pem")).unwrap()).unwrap();
    let running = server().tls(tls).model("flats", folder.path()).start().unwrap();
    let address = running.rest_address().unwrap();
    assert!(predict(address, false).is_err(), "a client without a certificate was let in");
    drop(running);
    for (certificate, key) in
        [("server_key.pem", "server_key.pem"), ("server.pem", "server.pem"), ("authority.pem", "server_key.pem")]
    {
        let read = |name: &str| std::fs::read(pem(name)).unwrap();
        let error = Tls::from_pem(&read(certificate), &read(key)).unwrap_err().to_string();
        assert!(error.contains("cannot be used"), "{error}");
    }
}

fn status(running: &Running, headers: &[(&str, &str)]) -> Result<GetModelStatusResponse, (i32, String)> {
    let model_spec = Some(ModelSpec { name: "flats".into(), ..Default::default() });
    let request = GetModelStatusRequest { model_spec };
    call(running.grpc_address().unwrap(), "tensorflow.serving.ModelService/GetModelStatus", &request, headers)
}

#[test]
fn requests_need_a_token() {
    let folder = served(classifier(0), 1);
    let running = server().token("one").unwrap().token("two").unwrap().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let paths = [
        ("POST", "/v1/models/flats:predict"),
        ("GET", "/v1/models/flats"),
        ("GET", "/v2/models/flats"),
        ("POST", "/v2/repository/models/flats/unload"),
        ("GET", "/monitoring/prometheus/metrics"),
        ("GET", "/page/data"),
        ("GET", "/nothing"),
    ];
    for (method, path) in paths {
        for headers in [&[][..], &[("authorization", "Bearer three")], &[("authorization", "Basic one")]] {
            let reply = client.ask(method, path, headers, BODY.as_bytes());
            assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer")), "{method} {path}");
        }
    }
    for token in ["one", "two"] {
        let reply = client.ask("POST", paths[0].1, &[("authorization", &format!("Bearer {token}"))], BODY.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    for path in ["/healthz", "/livez", "/"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    assert_eq!(status(&running, &[]).unwrap_err().0, 16);
    assert_eq!(status(&running, &[("authorization", "Bearer on")]).unwrap_err().0, 16);
    assert!(status(&running, &[("authorization", "Bearer one")]).is_ok());
    let health = HealthCheckRequest::default();
    let healthy: HealthCheckResponse =
        call(running.grpc_address().unwrap(), "grpc.health.v1.Health/Check", &health, &[]).unwrap();
    assert_eq!(healthy.status, 1);
}

/// The program, at a free port, with these arguments and variables.
struct Program {
    child: Child,
    address: SocketAddr,
    lines: Vec<String>,
}

impl Program {
    fn start(folder: &Folder, command: &mut Command) -> Program {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = command
            .args([format!("--model_base_path={}", folder.path().display()), format!("--rest_api_port={port}")])
            .args(["--model_name=flats", "--port=0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines: Vec<String> = Vec::new();
        while !lines.last().is_some_and(|line| line.contains("REST and gRPC at")) {
            lines.push(log.next().unwrap_or_else(|| panic!("the program ended: {lines:#?}")).unwrap());
        }
        std::thread::spawn(move || log.for_each(drop));
        Program { child, address: SocketAddr::from(([127, 0, 0, 1], port)), lines }
    }

    fn terminate(&mut self) -> bool {
        // SAFETY: the process is our child, and has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait().unwrap().success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve() -> Command {
    Command::new(env!("CARGO_BIN_EXE_estimand-serve"))
}

/// Sets the soft limit of open files, of this process or of a child; returns what is allowed.
fn limit_files(n: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write only the struct.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = n.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    limit.rlim_cur
}

/// The program is started with room for 256 files, raises that itself, and answers beside 10,000
/// connections that say nothing.
#[test]
fn ten_thousand_idle_connections() {
    use std::os::unix::process::CommandExt;

    let n = 10_000;
    let allowed = limit_files(n + 500);
    if allowed < n + 500 {
        eprintln!("skipped: this user may have only {allowed} open files");
        return;
    }
    let folder = served(classifier(0), 1);
    let mut command = serve();
    // SAFETY: the closure only makes system calls.
    unsafe {
        command.pre_exec(|| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = 256;
            match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let program = Program::start(&folder, command.arg("--head_timeout_in_ms=600000"));
    assert!(
        program.lines.iter().any(|line| line.contains("open files, about as many connections")),
        "{:#?}",
        program.lines
    );
    let resident = || -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        line.unwrap().parse::<f64>().unwrap() / 1024.0
    };
    let before = resident();
    let start = std::time::Instant::now();
    let idle: Vec<TcpStream> = (0..n).map(|_| TcpStream::connect(program.address).unwrap()).collect();
    println!("connected in {:.1} s", start.elapsed().as_secs_f64());
    // Half of them have said a little.
    for mut stream in idle.iter().step_by(2) {
        stream.write_all(b"POST /v1/mod").unwrap();
    }
    let mut client = Client::new(program.address);
    for _ in 0..20 {
        assert_eq!(client.post("/v1/models/flats:predict", BODY).status, 200);
    }
    let after = resident();
    println!("{n} idle connections: {before:.1} MB before, {after:.1} MB with them");
    assert!(after - before < 300.0, "{before} {after}");
}

/// Who is told that the server answers may end it before it waits.
#[test]
fn a_signal_before_the_wait_counts() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let signals = running.signals().unwrap();
    // SAFETY: the signal is caught from here on, so it does not end this process.
    unsafe { libc::raise(libc::SIGTERM) };
    signals.wait().unwrap();
    running.shutdown();
}

/// systemd is told when the server answers, and when it stops. Certificates and tokens come from
/// files.
#[test]
fn the_program_with_systemd_certificates_and_tokens() {
    let folder = served(classifier(0), 1);
    let socket = folder.path().join("notify.socket");
    let systemd = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    systemd.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let told = || {
        let mut message = [0; 100];
        let n = systemd.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..n]).into_owned()
    };
    let text = |name: &str| std::fs::read_to_string(pem(name)).unwrap().replace('\n', "\\n");
    let (ssl, tokens) = (folder.path().join("ssl.config"), folder.path().join("tokens"));
    std::fs::write(&ssl, format!("server_cert: '{}'\nserver_key: '{}'\n", text("server.pem"), text("server_key.pem")))
        .unwrap();
    std::fs::write(&tokens, "# ours\nsecret\n").unwrap();
    let mut command = serve();
    command.env("NOTIFY_SOCKET", &socket);
    command.args([format!("--ssl_config_file={}", ssl.display()), format!("--token_file={}", tokens.display())]);
    let mut program = Program::start(&folder, &mut command);
    assert_eq!(told(), "READY=1");
    assert_eq!(predict(program.address, false).unwrap(), "HTTP/1.1 401 Un");
    assert!(program.terminate());
    assert_eq!(told(), "STOPPING=1");
}
