//! One question after the other to name servers.

use crate::ZoneError;
use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder, Name, Rtype};
use domain::rdata::Txt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use weft_database::records::Texts;

/// How long a server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often each server is asked.
const ROUNDS: usize = 2;
/// The longest answer by UDP, which passes everywhere in one piece.
const DATAGRAM_BYTES: u16 = 1232;

/// What there is under a name.
#[derive(Debug, PartialEq, Eq)]
pub enum ZoneAnswer {
    Records(Vec<Texts>),
    Absent,
}

pub struct ZoneAsker {
    servers: Vec<SocketAddr>,
    /// Makes the numbers of questions, which nobody else can foresee.
    random: RandomState,
}

type Octets = Vec<u8>;

impl ZoneAsker {
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers, random: RandomState::new() }
    }

    /// The TXT records of a name.
    ///
    /// # Errors
    /// No server gives an answer that can be used.
    pub fn ask(&self, name: &str) -> Result<ZoneAnswer, ZoneError> {
        let mut why = Vec::new();
        for round in 0..ROUNDS {
            for server in &self.servers {
                match self.ask_server(*server, name, round) {
                    Ok(answer) => return Ok(answer),
                    Err(error) if why.len() < 2 * ROUNDS => why.push(format!("{server}: {error}")),
                    Err(_) => {}
                }
            }
        }
        why.sort();
        why.dedup();
        Err(ZoneError::Silent { name: name.to_owned(), why })
    }

    fn ask_server(&self, server: SocketAddr, name: &str, round: usize) -> io::Result<ZoneAnswer> {
        let question = self.question(name, round)?;
        let mut answer = by_datagram(server, &question)?;
        if answer.header().tc() {
            answer = by_stream(server, &question)?;
        }
        match answer.header().rcode() {
            Rcode::NOERROR => texts_of(&answer),
            Rcode::NXDOMAIN => Ok(ZoneAnswer::Absent),
            other => Err(io::Error::other(format!("it refuses with {other}"))),
        }
    }

    fn question(&self, name: &str, round: usize) -> io::Result<Message<Octets>> {
        let name: Name<Octets> = name.parse().map_err(io::Error::other)?;
        let number = self.random.hash_one((name.as_slice(), round, Instant::now()));
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(number as u16);
        message.header_mut().set_rd(true);
        let mut message = message.question();
        message.push((&name, Rtype::TXT)).map_err(io::Error::other)?;
        let mut message = message.additional();
        let options = message.opt(|options| {
            options.set_udp_payload_size(DATAGRAM_BYTES);
            Ok(())
        });
        options.map_err(io::Error::other)?;
        Ok(message.into_message())
    }
}

/// What is no answer to the question is passed over: anybody can send a datagram.
fn by_datagram(server: SocketAddr, question: &Message<Octets>) -> io::Result<Message<Octets>> {
    let own: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(own)?;
    socket.connect(server)?;
    socket.send(question.as_slice())?;
    let end = Instant::now() + PATIENCE;
    let mut buffer = [0; 4096];
    loop {
        socket.set_read_timeout(Some(left_until(end)?))?;
        let length = match socket.recv(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
            other => other?,
        };
        match Message::from_octets(buffer[..length].to_vec()) {
            Ok(answer) if answer.is_answer(question) => return Ok(answer),
            _ => {}
        }
    }
}

fn by_stream(server: SocketAddr, question: &Message<Octets>) -> io::Result<Message<Octets>> {
    let end = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_write_timeout(Some(left_until(end)?))?;
    let bytes = question.as_slice();
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), bytes].concat())?;
    let mut length = [0; 2];
    read_until(&mut stream, &mut length, end)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    read_until(&mut stream, &mut answer, end)?;
    let answer = Message::from_octets(answer).map_err(|_| io::Error::other("it sends what is no answer"))?;
    if answer.is_answer(question) { Ok(answer) } else { Err(io::Error::other("it answers another question")) }
}

/// Fills the buffer, in pieces, until then.
fn read_until(stream: &mut TcpStream, buffer: &mut [u8], end: Instant) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        stream.set_read_timeout(Some(left_until(end)?))?;
        match stream.read(&mut buffer[done..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left_until(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn texts_of(answer: &Message<Octets>) -> io::Result<ZoneAnswer> {
    let wrong = |_| io::Error::other("it sends what is no answer");
    let mut all = Vec::new();
    for record in answer.answer().map_err(wrong)?.limit_to_in::<Txt<_>>() {
        let record = record.map_err(wrong)?;
        let texts = record.data().iter().map(|text| String::from_utf8(text.to_vec()));
        // A record with other bytes is none of ours.
        all.extend(texts.collect::<Result<Texts, _>>().ok());
    }
    Ok(if all.is_empty() { ZoneAnswer::Absent } else { ZoneAnswer::Records(all) })
}
