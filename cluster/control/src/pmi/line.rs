//! Lines of the protocol: cutting a byte stream into lines and a line into its fields.

/// The fields of one line, in order. A word without `=` is a field with an empty value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Cuts `line` (without its newline) at blanks, and each word at its first `=`.
    pub fn parse(line: &'a str) -> Self {
        let words = line.split(' ').filter(|word| !word.is_empty());
        Self(words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    /// The value of the first field named `key`.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The value of `key` as a number; `None` where it is missing or not a number.
    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        self.value(key)?.parse().ok()
    }

    /// What the line asks for or answers: the value of `cmd`, or of `mcmd` for a block of lines.
    pub fn command(&self) -> Option<&'a str> {
        self.value("cmd").or_else(|| self.value("mcmd"))
    }
}

/// A peer sent more bytes than a line may have and no newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PMI line is longer than {max} bytes")]
pub struct LineTooLong {
    pub max: usize,
}

/// What a peer sent is no frame of PMI-2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PMI-2 frame begins with '{begin}' in place of its length, six digits of at most {max}")]
pub struct BadFrame {
    pub begin: String,
    pub max: usize,
}

/// The digits before a frame of PMI-2.
const LENGTH_BYTES: usize = 6;

/// Collects bytes as they come and hands out whole lines, or frames.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    max: usize,
}

impl LineBuffer {
    /// A buffer for lines of at most `max` bytes, newline included.
    pub fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max }
    }

    /// Takes in what was read from the socket.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its newline; bytes that are not UTF-8 are replaced, since they match nothing.
    pub fn poll_line(&mut self) -> Result<Option<String>, LineTooLong> {
        let too_long = LineTooLong { max: self.max };
        match self.bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) if end >= self.max => Err(too_long),
            Some(end) => {
                let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
                self.bytes.drain(..=end);
                Ok(Some(line))
            }
            None if self.bytes.len() >= self.max => Err(too_long),
            None => Ok(None),
        }
    }

    /// The next whole frame of PMI-2, of at most `max` bytes, without its length.
    pub fn poll_frame(&mut self, max: usize) -> Result<Option<String>, BadFrame> {
        let Some(head) = self.bytes.get(..LENGTH_BYTES) else { return Ok(None) };
        let text = String::from_utf8_lossy(head);
        // MPICH writes the blanks before the number, Slurm's library behind it.
        let digits = text.trim_matches(' ');
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let length = is_number.then(|| digits.parse().ok()).flatten().filter(|length| *length <= max);
        let Some(length): Option<usize> = length else {
            let begin = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            return Err(BadFrame { begin, max });
        };
        let end = LENGTH_BYTES + length;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let frame = String::from_utf8_lossy(&self.bytes[LENGTH_BYTES..end]).into_owned();
        self.bytes.drain(..end);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn value_may_hold_an_equals_sign() {
        let fields = Fields::parse("cmd=put  key=a value=x=y=");
        assert_eq!(fields.command(), Some("put"));
        assert_eq!(fields.value("value"), Some("x=y="));
        assert_eq!(fields.value("other"), None);
    }

    #[test]
    fn endless_line_is_refused_before_it_eats_memory() {
        let mut buffer = LineBuffer::new(16);
        buffer.handle_bytes(&[b'x'; 15]);
        assert_eq!(buffer.poll_line(), Ok(None));
        buffer.handle_bytes(b"x");
        assert_eq!(buffer.poll_line(), Err(LineTooLong { max: 16 }));
    }

    #[test]
    fn frames_come_out_behind_lines_and_must_begin_with_their_length() {
        let mut buffer = LineBuffer::new(16);
        buffer.handle_bytes(b"first\n     3a;b000002xy1     z     ");
        assert_eq!(buffer.poll_line(), Ok(Some("first".to_owned())));
        assert_eq!(buffer.poll_frame(9), Ok(Some("a;b".to_owned())));
        assert_eq!(buffer.poll_frame(9), Ok(Some("xy".to_owned())));
        assert_eq!(buffer.poll_frame(9), Ok(Some("z".to_owned())));
        assert_eq!(buffer.poll_frame(9), Ok(None));
        for bad in ["cmd=in", "    10", "      ", "   +1 ", "  1 2 "] {
            let mut buffer = LineBuffer::new(16);
            buffer.handle_bytes(bad.as_bytes());
            assert_eq!(buffer.poll_frame(9), Err(BadFrame { begin: bad.to_owned(), max: 9 }), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn lines_come_out_whole_however_the_stream_is_cut(
            lines in proptest::collection::vec("[ -~]{0,20}", 0..8),
            cuts in proptest::collection::vec(1usize..9, 1..40),
        ) {
            let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut rest = stream.as_bytes();
            let mut buffer = LineBuffer::new(64);
            let mut seen = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                rest = later;
                buffer.handle_bytes(now);
                while let Some(line) = buffer.poll_line().unwrap() { seen.push(line); }
            }
            prop_assert_eq!(seen, lines);
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut buffer = LineBuffer::new(64);
            buffer.handle_bytes(&bytes);
            while let Ok(Some(line)) = buffer.poll_line() { let _ = Fields::parse(&line).command(); }
        }
    }
}
