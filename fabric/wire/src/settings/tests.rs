use super::*;

const NO_ENV: [(&str, &str); 0] = [];

fn refused(env: &[(&str, &str)]) -> Vec<String> {
    let errors = Settings::from_env(env.iter().copied()).expect_err("must be refused");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn every_default_fits_its_kind_and_is_shown_as_written() {
    let settings = Settings::default();
    for row in settings.rows() {
        assert_eq!(row.value, row.definition.default, "{}", row.definition.name);
        assert_eq!(row.origin, Origin::Default);
    }
    assert_eq!(settings.rows().count(), COUNT);
}

#[test]
fn names_variables_and_flags_are_unique_and_follow_one_pattern() {
    for (index, definition) in DEFINITIONS.iter().enumerate() {
        assert_eq!(definition.env, format!("{PREFIX}{}", definition.name.to_uppercase()));
        assert!(definition.flag.is_none_or(|flag| flag == definition.name.replace('_', "-")));
        assert!(DEFINITIONS[..index].iter().all(|other| other.name != definition.name), "{}", definition.name);
        assert!(definition.meaning.ends_with('.'));
    }
}

#[test]
fn the_environment_wins_over_defaults_and_flags_win_over_both() {
    let env = [("WEFT_BIND", "core"), ("WEFT_EAGER_BYTES", "8K"), ("HOME", "/"), ("WEFT_JOB", "anything")];
    let settings = Settings::from_env_and_flags(env, [("bind", "none"), ("timeout", "30")]).unwrap();
    assert_eq!((settings.bind, settings.timeout), (Bind::None, Some(30)));
    assert_eq!((settings.eager_bytes, settings.spin_us), (8192, None));
    let origin = |name| settings.rows().find(|row| row.definition.name == name).unwrap().origin;
    assert_eq!(origin("bind"), Origin::Flag);
    assert_eq!(origin("eager_bytes"), Origin::Environment);
    assert_eq!(origin("spin_us"), Origin::Default);
}

#[test]
fn values_are_shown_in_their_shortest_form() {
    let env = [("WEFT_EAGER_BYTES", "2097152"), ("WEFT_STATUS", "FALSE"), ("WEFT_SINGLE_COPY_BYTES", "1500")];
    let settings = Settings::from_env(env).unwrap();
    let value = |name| settings.rows().find(|row| row.definition.name == name).unwrap().value;
    assert_eq!(value("eager_bytes"), "2M");
    assert_eq!(value("status"), "off");
    assert_eq!(value("single_copy_bytes"), "1500");
}

#[test]
fn an_unknown_variable_is_no_error_and_is_told_with_the_nearest_name() {
    let env = [("WEFT_SPIN_MS", "5"), ("WEFT_BIND", "core"), ("WEFT_JOB", "x"), ("HOME", "/"), ("WEFT_CX", "c")];
    assert_eq!(Settings::from_env(env).map(|settings| settings.bind), Ok(Bind::Core));
    let told: Vec<String> = unknown(env).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "unknown setting WEFT_CX = \"c\" (the nearest known name is WEFT_CC; `weft info` lists all)",
            "unknown setting WEFT_SPIN_MS = \"5\" (the nearest known name is WEFT_SPIN_US; `weft info` lists all)",
        ]
    );
    assert!(unknown(env)[0].warning().ends_with(" is ignored"));
    let far = unknown([("WEFT_HOME", "/opt")])[0].to_string();
    assert_eq!(far, "unknown setting WEFT_HOME = \"/opt\" (`weft info` lists all)", "nothing is near");
}

#[test]
fn a_wrong_value_names_setting_value_and_what_is_accepted() {
    assert_eq!(
        refused(&[("WEFT_BIND", "cores"), ("WEFT_SPIN_US", "-1")]),
        [
            "setting bind: WEFT_BIND is \"cores\", accepted is: auto, core, none (nearest is core)",
            "setting spin_us: WEFT_SPIN_US is \"-1\", accepted is: auto or a whole number of microseconds from 0 to \
             1000000",
        ]
    );
}

#[test]
fn sizes_out_of_range_or_malformed_are_refused() {
    for value in ["", " ", "K", "2G", "1T", "1.5M", "99999999999999999999", "18014398509481984K", "٣"] {
        assert_eq!(refused(&[("WEFT_EAGER_BYTES", value)]).len(), 1, "{value}");
    }
    for (value, bytes) in [("0", 0), ("64k", 65536), (" 1MiB ", 1 << 20), ("1g", ONE_GIB), ("12B", 12)] {
        assert_eq!(Settings::from_env([("WEFT_EAGER_BYTES", value)]).unwrap().eager_bytes, bytes, "{value}");
    }
}

const ONE_GIB: u64 = 1 << 30;

#[test]
fn flags_are_refused_like_variables() {
    let errors = Settings::from_env_and_flags(NO_ENV, [("timeout", "0"), ("tagoutput", "on")]).unwrap_err();
    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(text[0].starts_with("setting timeout: --timeout is \"0\""), "{}", text[0]);
    assert!(text[1].contains("nearest known name is tag-output"), "{}", text[1]);
}

#[test]
#[cfg(unix)]
fn bytes_that_are_no_text_are_an_error_of_ours_only() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let junk = OsStr::from_bytes(b"\xff\xfe");
    assert!(Settings::from_env([(OsStr::new("OTHER"), junk)]).is_ok());
    assert_eq!(Settings::from_env([(OsStr::new("WEFT_BIND"), junk)]).unwrap_err().len(), 1);
}

#[test]
fn ports_are_a_list_of_numbers_and_ranges() {
    let ports = |text: &str| Settings::from_env([("WEFT_SOCK_ONLY", text)]).map(|settings| settings.sock_only);
    let some = ports("80, 7000-7010,65535").unwrap();
    assert_eq!(some.to_string(), "80,7000-7010,65535");
    for (port, inside) in
        [(79, false), (80, true), (81, false), (6999, false), (7000, true), (7010, true), (7011, false)]
    {
        assert_eq!(some.contains(port), inside, "{port}");
    }
    assert!(ports("ALL").unwrap().contains(0) && ports("all").unwrap().contains(u16::MAX));
    for text in ["", "x", "80,", "65536", "9-8", "1-2-3", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"] {
        assert!(ports(text).is_err(), "{text}");
    }
}
