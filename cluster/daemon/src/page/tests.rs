//! What the page answers, and what it bears.

use super::answer::{PageAnswer, PageServer};
use super::history::History;
use super::metrics::metrics;
use super::{CONNECTIONS_MAX, serve};
use hyper::Request;
use hyper::http::request::Parts;
use proptest::prelude::*;
use std::cell::Cell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weft_requests::{ClusterView, MemberView, made};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));

fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Parts {
    let builder = headers.iter().fold(Request::builder(), |builder, (name, value)| builder.header(*name, *value));
    builder.method(method).uri(path).body(()).expect("a request").into_parts().0
}

fn page(token: Option<&str>) -> PageServer<impl Fn(bool) -> ClusterView> {
    PageServer::new(|_| made::view(12, 0), token.map(str::to_owned))
}

fn status(answer: &PageAnswer) -> u16 {
    answer.status().as_u16()
}

fn header<'a>(answer: &'a PageAnswer, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

/// Runs this beside a page on a free port. Time stands still, and goes on as far as is needed when all wait.
fn beside_page<R: Future>(view: impl Fn(bool) -> ClusterView + 'static, run: impl FnOnce(SocketAddr) -> R) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("made");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let place = listener.local_addr().expect("its address");
        let server = tokio::task::spawn_local(serve(listener, view, None));
        run(place).await;
        assert!(!server.is_finished());
        server.abort();
    });
}

/// Sends this and reads until the page ends the connection.
async fn sent(place: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(place).await.expect("it listens");
    // The page may end it before all is sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn got(place: SocketAddr, path: &str) -> String {
    sent(
        place,
        format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", place.port()).as_bytes(),
    )
    .await
}

#[test]
fn a_browser_gets_a_page_that_loads_nothing_else_and_its_data() {
    beside_page(
        |_| made::view(12, 0),
        |place| async move {
            let page = got(place, "/").await;
            assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("text/html") && page.ends_with("</html>\n"));
            for loading in ["src=", "<link rel=\"stylesheet", "@import", "https://", "url("] {
                assert!(!page.contains(loading), "{loading}");
            }
            let json = got(place, "/view.json").await;
            let (head, body) = json.split_once("\r\n\r\n").expect("a head");
            assert!(head.contains("application/json"), "{head}");
            assert_eq!(body, serde_json::to_string(&made::view(12, 0)).expect("JSON"));
            assert!(got(place, "/history.json").await.contains("\"samples\":["));
            assert!(got(place, "/metrics").await.contains("\nweft_members{standing=\"dead\"} 1\n"));
        },
    );
}

#[test]
fn a_page_is_read_only_and_has_four_paths() {
    let page = page(None);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "x"] {
        let answer = page.answer(&request(method, "/view.json", &[]), HERE);
        assert_eq!((status(&answer), header(&answer, "allow")), (405, "GET"), "{method}");
    }
    for path in ["/favicon.ico", "/../etc/passwd", "//", "/view.json/", "*"] {
        assert_eq!(status(&page.answer(&request("GET", path, &[]), HERE)), 404, "{path}");
    }
    let answer = page.answer(&request("GET", "/", &[]), HERE);
    assert!(header(&answer, "content-security-policy").starts_with("default-src 'none'"));
    assert_eq!((header(&answer, "cache-control"), header(&answer, "x-content-type-options")), ("no-store", "nosniff"));
}

#[test]
fn this_host_reads_without_a_token_but_not_under_a_foreign_name() {
    let page = page(None);
    let under = |host: &str| status(&page.answer(&request("GET", "/view.json", &[("host", host)]), HERE));
    for host in ["localhost", "LocalHost:7338", "127.0.0.1:7338", "127.0.0.1", "[::1]:7338", "[::1]"] {
        assert_eq!(under(host), 200, "{host}");
    }
    for host in
        ["evil.example", "evil.example:7338", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""]
    {
        assert_eq!(under(host), 401, "{host}");
    }
    assert_eq!(status(&page.answer(&request("GET", "/view.json", &[("host", "localhost")]), THERE)), 401);
    let empty = PageServer::new(|_| made::view(1, 0), Some(String::new()));
    assert_eq!(status(&empty.answer(&request("GET", "/?token=", &[]), THERE)), 401, "no token is no token");
}

#[test]
fn others_show_the_token_once_and_keep_it_as_a_cookie() {
    let page = page(Some("s3cret"));
    let from = |path: &str, headers: &[(&str, &str)]| page.answer(&request("GET", path, headers), THERE);
    let refused = from("/", &[]);
    assert_eq!((status(&refused), header(&refused, "www-authenticate")), (401, "Bearer"));
    let first = from("/?token=s3cret", &[]);
    assert_eq!((status(&first), header(&first, "location")), (303, "/"));
    assert_eq!(header(&first, "set-cookie"), "weft=s3cret; HttpOnly; SameSite=Strict; Path=/");
    assert_eq!(status(&from("/view.json", &[("cookie", "a=b; weft=s3cret")])), 200);
    assert_eq!(status(&from("/metrics", &[("authorization", "Bearer s3cret")])), 200);
    for wrong in ["s3cre", "s3cret1", "S3cret", ""] {
        assert_eq!(status(&from("/view.json", &[("cookie", &format!("weft={wrong}"))])), 401, "{wrong}");
        assert_eq!(status(&from(&format!("/view.json?token={wrong}"), &[])), 401, "{wrong}");
        assert_eq!(status(&from("/metrics", &[("authorization", &format!("Bearer {wrong}"))])), 401, "{wrong}");
    }
}

#[test]
fn a_view_is_made_once_however_many_look() {
    let made = Rc::new(Cell::new(0));
    let counted = Rc::clone(&made);
    let page = PageServer::new(
        move |_| {
            counted.set(counted.get() + 1);
            ClusterView::default()
        },
        None,
    );
    for path in ["/view.json", "/metrics", "/view.json", "/"].repeat(20) {
        page.answer(&request("GET", path, &[]), HERE);
    }
    // In less than a second it is one; what counts is that it is not one for each.
    assert!((1..20).contains(&made.get()), "{}", made.get());
}

#[test]
fn who_sends_half_a_request_keeps_nobody_out() {
    beside_page(
        |_| made::view(3, 0),
        |place| async move {
            let mut halves = Vec::new();
            for _ in 0..2 * CONNECTIONS_MAX {
                let mut half = TcpStream::connect(place).await.expect("it listens");
                half.write_all(b"GET /view.json HTTP/1.1\r\nHost: loc").await.expect("sent");
                halves.push(half);
            }
            assert!(got(place, "/view.json").await.starts_with("HTTP/1.1 200 "));
        },
    );
}

#[test]
fn long_heads_bodies_and_noise_end_their_own_connection_only() {
    beside_page(
        |_| made::view(3, 0),
        |place| async move {
            let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
            let answer = sent(place, long.as_bytes()).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
            let headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
            assert!(!sent(place, headers.as_bytes()).await.starts_with("HTTP/1.1 200"));
            sent(place, &[0xff; 5000]).await;
            let body = [b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n".as_slice(), &[b'x'; 100_000]].concat();
            sent(place, &body).await;
            assert!(got(place, "/").await.starts_with("HTTP/1.1 200 "));
        },
    );
}

#[test]
fn metrics_have_a_type_each_and_escaped_labels() {
    let mut view = made::view(12, 0);
    view.members.push(MemberView { name: "a\"b\\c\nd".to_owned(), ..MemberView::default() });
    let text = metrics(&view);
    assert!(text.contains("\nweft_slots{member=\"a\\\"b\\\\c\\nd\"} 0\n"), "{text}");
    let mut typed = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(of) => typed = of.strip_suffix(" gauge").expect("a gauge"),
            None if line.starts_with("# HELP ") => {}
            None => {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                assert_eq!(name.split('{').next(), Some(typed), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
    let sent: u64 = view.traffic.iter().filter(|flow| flow.from == view.traffic[0].from).map(|flow| flow.bytes).sum();
    assert!(text.contains(&format!("\nweft_sent_bytes{{member=\"{}\"}} {sent}\n", view.traffic[0].from)));
}

#[test]
fn an_hour_is_kept_and_rates_are_between_samples() {
    let mut history = History::default();
    for turn in 0..600_u64 {
        history.add(&made::view(12, 15 * turn));
    }
    history.add(&made::view(12, 0));
    let json: serde_json::Value = serde_json::from_slice(&history.json()).expect("JSON");
    let samples = json["samples"].as_array().expect("samples");
    let time = |at: usize| samples[at]["time"].as_u64().expect("a time");
    assert_eq!((samples.len(), time(samples.len() - 1) - time(0)), (240, 239 * 15));
    let bytes = |seconds| made::view(12, seconds).traffic.iter().map(|flow| flow.bytes).sum::<u64>();
    assert_eq!(samples[5]["rate"].as_u64().expect("a rate"), (bytes(15) - bytes(0)) / 15);
}

#[test]
fn the_page_shows_the_fields_that_a_view_has() {
    let script = include_str!("draw.js");
    let view = serde_json::to_value(made::view(12, 0)).expect("JSON");
    let fields = |value: &serde_json::Value| value.as_object().expect("fields").keys().cloned().collect::<Vec<_>>();
    let sent = ["members", "partitions", "queue", "jobs", "traffic"].map(|list| fields(&view[list][0]));
    for field in fields(&view).iter().chain(sent.iter().flatten()).filter(|field| *field != "usual_slots") {
        assert!(script.contains(&format!(".{field}")), "{field}");
    }
}

proptest! {
    #[test]
    fn no_request_makes_it_fail(
        path in "/[a-z.?=&%;]{0,30}",
        host in "[a-z0-9:.\\[\\]]{0,20}",
        cookie in "[ -~]{0,40}",
    ) {
        let Ok(request) = Request::builder().uri(path).header("host", host).header("cookie", cookie).body(()) else {
            return Ok(());
        };
        let answer = page(Some("t")).answer(&request.into_parts().0, THERE);
        prop_assert!([401, 303].contains(&status(&answer)) || answer.status().is_success() || status(&answer) == 404);
    }
}
