//! What is answered to one request.

use super::history::History;
use super::metrics::metrics;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Uri};
use std::cell::RefCell;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use weft_requests::ClusterView;

/// One file for the browser, made of those that people change.
const PAGE: &str = concat!(
    include_str!("head.html"),
    include_str!("page.css"),
    include_str!("body.html"),
    include_str!("draw.js"),
    include_str!("tail.html")
);
/// How long a view is that of now.
const FRESH: Duration = Duration::from_secs(1);
const COOKIE: &str = "weft";
/// The page is complete: whatever it would load or be put into is not from here.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
];

pub type PageAnswer = Response<Full<Bytes>>;

pub struct PageServer<V> {
    view: V,
    token: Option<String>,
    kept: RefCell<Option<KeptView>>,
    history: RefCell<History>,
}

/// The view of a moment, written once for all who ask then.
struct KeptView {
    since: Instant,
    view: ClusterView,
    json: Option<Bytes>,
}

impl<V: Fn(bool) -> ClusterView> PageServer<V> {
    pub fn new(view: V, token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        Self { view, token, kept: RefCell::default(), history: RefCell::default() }
    }

    /// Takes a sample for the history, and lets go what nobody looks at.
    pub fn sample(&self) {
        let mut kept = self.kept.borrow_mut();
        if kept.as_ref().is_some_and(|kept| kept.since.elapsed() > FRESH) {
            *kept = None;
        }
        self.history.borrow_mut().add(&(self.view)(false));
    }

    pub fn answer(&self, request: &Parts, peer: IpAddr) -> PageAnswer {
        if request.method != Method::GET {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "allowed is GET");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return answer;
        }
        let shown = self.token.as_deref().is_some_and(|token| shows(request, token));
        let is_near = peer.is_loopback() && is_for_this_host(&request.headers);
        if !shown && !is_near {
            let mut answer =
                plain(StatusCode::UNAUTHORIZED, "a token is needed, as /?token=TOKEN or Authorization: Bearer TOKEN");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return answer;
        }
        match request.uri.path() {
            "/" => match token_in(&request.uri).filter(|_| shown) {
                Some(token) => keeping(token),
                None => answer_of(StatusCode::OK, "text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes())),
            },
            "/view.json" => answer_of(StatusCode::OK, "application/json", self.json()),
            "/history.json" => answer_of(StatusCode::OK, "application/json", self.history.borrow().json().into()),
            "/metrics" => {
                let text = self.with_view(|kept| metrics(&kept.view));
                answer_of(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text.into())
            }
            _ => plain(StatusCode::NOT_FOUND, "there are /, /view.json, /history.json and /metrics"),
        }
    }

    fn with_view<T>(&self, read: impl FnOnce(&mut KeptView) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        let fresh = kept.take().filter(|kept| kept.since.elapsed() <= FRESH);
        let now = fresh.unwrap_or_else(|| KeptView { since: Instant::now(), view: (self.view)(true), json: None });
        read(kept.insert(now))
    }

    fn json(&self) -> Bytes {
        self.with_view(|KeptView { view, json, .. }| {
            // A view has no key that is no text, nothing else can fail.
            json.get_or_insert_with(|| serde_json::to_vec(view).unwrap_or_default().into()).clone()
        })
    }
}

fn answer_of(status: StatusCode, kind: &'static str, body: Bytes) -> PageAnswer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn plain(status: StatusCode, line: &'static str) -> PageAnswer {
    answer_of(status, "text/plain; charset=utf-8", Bytes::from_static(line.as_bytes()))
}

/// Sends the browser to the page without the token in its address, with the token as a cookie.
fn keeping(token: &str) -> PageAnswer {
    let mut answer = plain(StatusCode::SEE_OTHER, "see /");
    answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    let cookie = HeaderValue::try_from(format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"));
    answer.headers_mut().extend(cookie.ok().map(|cookie| (header::SET_COOKIE, cookie)));
    answer
}

/// Whether a request of this host is meant for it: browsers say for whom they ask.
fn is_for_this_host(headers: &HeaderMap) -> bool {
    let Some(given) = headers.get(header::HOST) else { return true };
    let Ok(host) = given.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn token_in(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn shows(request: &Parts, token: &str) -> bool {
    let text = |name: HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let pair = |cookie: &'_ str| {
        cookie.trim().split_once('=').is_some_and(|(name, value)| name == COOKIE && same(value, token))
    };
    bearer.is_some_and(|given| same(given.trim(), token))
        || token_in(&request.uri).is_some_and(|given| same(given, token))
        || text(header::COOKIE).is_some_and(|cookies| cookies.split(';').any(pair))
}

/// Takes as long for every wrong one of the same length.
fn same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == token.len() && std::hint::black_box(differing) == 0
}
