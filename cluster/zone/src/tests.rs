//! Reading from a name server that is a thread of the test, and lies where it is told to.

use super::*;
use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder, StreamTarget, Ttl};
use domain::rdata::Txt;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use weft_database::records::{RecordBlock, records};

const FILE: &str = "name = \"lab\"\nversion = 7\n[[member]]\nname = \"n1\"\n[[member]]\nname = \"n2\"\nslots = 3\n";

fn lab() -> Cluster {
    weft_database::read(FILE).expect("no mistakes")
}

fn large() -> Cluster {
    let members: String = (0..500).map(|at| format!("[[member]]\nname = \"node{at}\"\n")).collect();
    weft_database::read(&format!("name = \"large\"\n{members}")).expect("no mistakes")
}

/// What a server says to a question: the records, cut off where it goes by a datagram and is long.
fn answer(question: &[u8], blocks: &[RecordBlock], by_datagram: bool) -> Vec<u8> {
    let question = Message::from_octets(question.to_vec()).expect("a question");
    let name = question.first_question().expect("one").qname().to_string();
    let records = blocks.iter().find(|block| name == format!("{}.lab.example", block.name)).map(|block| &block.records);
    let long = records.is_some_and(|records| records.concat().concat().len() > 900);
    let rcode = if records.is_some() { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    let builder = MessageBuilder::from_target(StreamTarget::new_vec()).expect("room");
    let mut answer = builder.start_answer(&question, rcode).expect("room");
    answer.header_mut().set_tc(by_datagram && long);
    let sent = records.filter(|_| !(by_datagram && long)).into_iter().flatten();
    for texts in sent {
        let data: Vec<u8> = texts.iter().flat_map(|text| [&[text.len() as u8], text.as_bytes()].concat()).collect();
        let data = Txt::from_octets(data).expect("texts");
        let name = question.first_question().expect("one").into_qname();
        answer.push((name, Ttl::from_secs(1), data)).expect("room");
    }
    answer.finish().as_dgram_slice().to_vec()
}

/// A server that has the next version at each question, and keeps the last. Its datagrams are what `change` makes of
/// them.
fn serve(versions: Vec<Vec<RecordBlock>>, change: impl Fn(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static) -> ZonePlace {
    let (listener, socket) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().expect("its address")) {
            break (listener, socket);
        }
    };
    let port = listener.local_addr().expect("its address").port();
    let last = versions.last().expect("a version").clone();
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        for turn in 0.. {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { return };
            let blocks = versions.get(turn).unwrap_or(&last);
            for bytes in change(answer(&buffer[..length], blocks, true)) {
                let _ = socket.send_to(&bytes, from);
            }
        }
    });
    let blocks = records(&large());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut length = [0; 2];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            let _ = stream.read_exact(&mut question);
            let bytes = answer(&question, &blocks, false);
            let _ = stream.write_all(&[&(bytes.len() as u16).to_be_bytes(), &bytes[..]].concat());
        }
    });
    format!("dns:lab.example@127.0.0.1:{port}").parse().expect("a place")
}

#[test]
fn a_cluster_is_read_from_its_records() {
    let place = serve(vec![records(&lab())], |bytes| vec![bytes]);
    assert_eq!(read(&place).expect("a cluster"), lab());
}

#[test]
fn what_is_too_long_for_a_datagram_comes_by_a_stream() {
    let place = serve(vec![records(&large())], |bytes| vec![bytes]);
    assert_eq!(read(&place).expect("a cluster"), large());
}

#[test]
fn answers_to_other_questions_and_noise_are_passed_over() {
    let place = serve(vec![records(&lab())], |bytes| {
        let mut other = bytes.clone();
        other[0] ^= 1;
        vec![Vec::new(), vec![0; 5], vec![255; 700], other, bytes]
    });
    assert_eq!(read(&place).expect("a cluster"), lab());
}

#[test]
fn a_version_that_changes_meanwhile_is_read_from_its_beginning() {
    let newer = Cluster { version: 8, ..lab() };
    let place = serve(vec![records(&lab()), records(&newer)], |bytes| vec![bytes]);
    assert_eq!(read(&place).expect("a cluster"), newer);
}

#[test]
fn an_absent_zone_and_a_refusal_are_one_line() {
    let place = serve(vec![Vec::new()], |bytes| vec![bytes]);
    assert_eq!(read(&place).expect_err("none").to_string(), "there is no '_weft.lab.example'");
    let place = serve(vec![records(&lab())], |mut bytes| {
        bytes[3] = bytes[3] & 0xf0 | 5;
        vec![bytes]
    });
    let line = read(&place).expect_err("refused").to_string();
    assert!(line.starts_with("no name server has answered for '_weft.lab.example': 127.0.0.1:"), "{line}");
    assert!(line.contains("REFUSED"), "{line}");
}
