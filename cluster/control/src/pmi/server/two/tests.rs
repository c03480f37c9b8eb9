use super::*;
use proptest::prelude::*;

/// What comes of a frame, with the frames cut.
fn ask(server: &mut PmiServer, rank: usize, pairs: &[(&str, &str)]) -> Vec<(usize, Pairs)> {
    server.handle_bytes(rank, frame(pairs).as_bytes());
    let mut answers = Vec::new();
    while let Some(event) = server.poll_event() {
        if let PmiEvent::Reply { rank, line } = event {
            assert_eq!(line[..6].trim_start().parse(), Ok(line.len() - 6), "{line}");
            answers.push((rank, Pairs::parse(&line[6..])));
        }
    }
    answers
}

fn answer(server: &mut PmiServer, rank: usize, pairs: &[(&str, &str)]) -> Pairs {
    let mut answers = ask(server, rank, pairs);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (to, answer) = answers.remove(0);
    assert_eq!(to, rank);
    let command = pairs[0].1;
    assert_eq!(answer.value("cmd"), Some(&*format!("{command}-response")));
    answer
}

/// A job whose ranks have all begun with PMI-2.
fn server(places: &[usize]) -> PmiServer {
    let mut server = PmiServer::on_hosts("job", vec![0; places.len()], places);
    for rank in 0..places.len() {
        server.handle_bytes(rank, b"cmd=init pmi_version=2 pmi_subversion=0\n");
        let line = "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n".to_owned();
        assert_eq!(server.poll_event(), Some(PmiEvent::Reply { rank, line }));
    }
    assert_eq!(server.poll_event(), None);
    server
}

#[test]
fn the_full_init_is_the_beginning_and_finalize_the_end() {
    let mut server = server(&[0, 0]);
    server.handle_bytes(1, frame(&[("cmd", "fullinit"), ("pmirank", "1"), ("threaded", "FALSE")]).as_bytes());
    let events: Vec<PmiEvent> = std::iter::from_fn(|| server.poll_event()).collect();
    let body = "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=0;debugged=FALSE;\
                pmiverbose=FALSE;";
    let line = format!("{:6}{body}", body.len());
    let interface = InterfaceName::Mpi;
    assert_eq!(events, [PmiEvent::Reply { rank: 1, line }, PmiEvent::Initialised { rank: 1, interface }]);
    server.handle_bytes(1, frame(&[("cmd", "finalize")]).as_bytes());
    let events: Vec<PmiEvent> = std::iter::from_fn(|| server.poll_event()).collect();
    assert_eq!(events[1], PmiEvent::Finalised { rank: 1 });
}

#[test]
fn values_come_back_whole_with_the_thread_that_asked() {
    let mut server = server(&[0, 0]);
    let value = "a;b=c;;d e";
    let put = [("cmd", "kvs-put"), ("key", "k"), ("value", value), ("thrid", "7")];
    assert_eq!(answer(&mut server, 0, &put).value("thrid"), Some("7"));
    let get = answer(&mut server, 1, &[("cmd", "kvs-get"), ("jobid", "job"), ("srcid", "-1"), ("key", "k")]);
    assert_eq!((get.value("found"), get.value("value"), get.value("thrid")), (Some("TRUE"), Some(value), None));
    let get = answer(&mut server, 1, &[("cmd", "kvs-get"), ("key", "z")]);
    assert_eq!((get.value("rc"), get.value("found")), (Some("0"), Some("FALSE")));
    let put = answer(&mut server, 0, &[("cmd", "kvs-put"), ("key", "PMI_x"), ("value", "1")]);
    assert_eq!((put.value("rc"), put.value("errmsg")), (Some("-1"), Some("key_is_reserved")));
}

#[test]
fn the_barrier_is_one_for_both_versions() {
    let mut server = PmiServer::new("job", vec![0; 2]);
    server.handle_bytes(0, b"cmd=init pmi_version=2 pmi_subversion=0\n");
    server.handle_bytes(1, b"cmd=init pmi_version=1 pmi_subversion=1\ncmd=barrier_in\n");
    while server.poll_event().is_some() {}
    server.handle_bytes(0, frame(&[("cmd", "kvs-fence"), ("thrid", "3")]).as_bytes());
    let lines: Vec<String> = std::iter::from_fn(|| server.poll_event())
        .filter_map(|event| if let PmiEvent::Reply { line, .. } = event { Some(line) } else { None })
        .collect();
    assert_eq!(
        lines,
        [frame(&[("cmd", "kvs-fence-response"), ("thrid", "3"), ("rc", "0")]), "cmd=barrier_out rc=0\n".into()]
    );
}

#[test]
fn what_is_told_to_a_host_is_heard_there_alone_and_may_be_waited_for() {
    let mut server = server(&[0, 0, 1]);
    let get = |wait| [("cmd", "info-getnodeattr"), ("key", "k"), ("wait", wait)];
    assert_eq!(answer(&mut server, 1, &get("FALSE")).value("found"), Some("FALSE"));
    assert_eq!(ask(&mut server, 1, &get("TRUE")), []);
    assert_eq!(ask(&mut server, 2, &get("TRUE")), []);
    let put = [("cmd", "info-putnodeattr"), ("key", "k"), ("value", "v")];
    let told = ask(&mut server, 0, &put);
    let seen: Vec<_> = told.iter().map(|(rank, pairs)| (*rank, pairs.value("value"))).collect();
    assert_eq!(seen, [(0, None), (1, Some("v"))]);
    assert_eq!(answer(&mut server, 1, &get("TRUE")).value("value"), Some("v"));
}

#[test]
fn the_job_tells_where_its_ranks_are() {
    let mut server = server(&[0, 0, 1]);
    let attribute = |server: &mut PmiServer, key| {
        answer(server, 0, &[("cmd", "info-getjobattr"), ("key", key)]).value("value").map(str::to_owned)
    };
    assert_eq!(attribute(&mut server, "PMI_process_mapping").as_deref(), Some("(vector,(0,1,2),(1,1,1))"));
    assert_eq!(attribute(&mut server, "universeSize").as_deref(), Some("3"));
    assert_eq!(attribute(&mut server, "other"), None);
    assert_eq!(answer(&mut server, 0, &[("cmd", "job-getid")]).value("jobid"), Some("job"));
}

#[test]
fn names_are_one_list_and_spawning_is_refused() {
    let mut server = server(&[0]);
    let name = |command| [("cmd", command), ("name", "s"), ("port", "p#1;x")];
    assert_eq!(answer(&mut server, 0, &name("name-lookup")).value("found"), Some("FALSE"));
    assert_eq!(answer(&mut server, 0, &name("name-publish")).value("rc"), Some("0"));
    assert_eq!(answer(&mut server, 0, &name("name-publish")).value("rc"), Some("-1"));
    assert_eq!(answer(&mut server, 0, &name("name-lookup")).value("value"), Some("p#1;x"));
    assert_eq!(answer(&mut server, 0, &name("name-unpublish")).value("rc"), Some("0"));
    assert_eq!(answer(&mut server, 0, &[("cmd", "spawn"), ("ncmds", "1")]).value("errmsg"), Some(SPAWN_REFUSED));
}

#[test]
fn an_abort_is_told_and_nonsense_is_a_fault() {
    let mut server = server(&[0, 0]);
    server.handle_bytes(0, frame(&[("cmd", "abort"), ("isworld", "TRUE"), ("msg", "it; broke")]).as_bytes());
    let abort = PmiEvent::Abort { rank: 0, code: 1, message: "it; broke".into(), lost: None };
    assert_eq!(server.poll_event(), Some(abort));
    server.handle_bytes(1, b"cmd=finalize;");
    assert!(matches!(server.poll_event(), Some(PmiEvent::Fault { rank: 1, .. })));
    server.handle_bytes(1, frame(&[("cmd", "finalize")]).as_bytes());
    assert_eq!(server.poll_event(), None, "nothing more of it is read");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(pairs in proptest::collection::vec(("[a-z-]{1,9}", "[ -~]{0,20}"), 0..6)) {
        // A frame in which a semicolon ends one value and begins the next has two readings.
        let pairs: Vec<(String, String)> =
            pairs.into_iter().map(|(key, value)| (key, value.trim_matches(';').to_owned())).collect();
        let given: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
        prop_assert_eq!(Pairs::parse(&frame(&given)[6..]), Pairs(pairs.clone()));
    }

    #[test]
    fn nonsense_never_panics_and_answers_are_frames(
        input in proptest::collection::vec((0usize..2, "(cmd=)?(fullinit|kvs-put|kvs-fence|info-getnodeattr|spawn|abort)?;[ -~]{0,40}"), 0..20)
    ) {
        let mut server = server(&[0, 1]);
        for (rank, text) in input {
            server.handle_bytes(rank, format!("{:6}{text}", text.len()).as_bytes());
            while let Some(event) = server.poll_event() {
                if let PmiEvent::Reply { line, .. } = event {
                    prop_assert_eq!(line[..6].trim_start().parse(), Ok(line.len() - 6));
                }
            }
        }
    }
}
