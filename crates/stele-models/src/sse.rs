//! Server-sent events: the data of each event, out of pieces as they come. WHATWG HTML 9.2, as far as the wires use it.

/// Most bytes of one event.
const EVENT_BYTES: usize = 16 * 1024 * 1024;

/// An event larger than any sensible one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// What was read and is no whole event yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    /// Whether the last byte was a CR, whose LF is to be passed over.
    after_cr: bool,
}

impl Events {
    /// Reads on; the data of the events that this piece ends, in order.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut whole = Vec::new();
        for &byte in piece {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(&mut whole),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > EVENT_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(whole)
    }

    /// The data of the last event where the stream ends without the empty line after it.
    pub(crate) fn end(mut self) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        self.end_line(&mut whole);
        if whole.is_empty() && !self.data.is_empty() {
            whole.push(self.data);
        }
        whole.pop()
    }

    fn end_line(&mut self, whole: &mut Vec<Vec<u8>>) {
        if self.line.is_empty() {
            if !self.data.is_empty() {
                whole.push(std::mem::take(&mut self.data));
            }
            return;
        }
        if let Some(value) = self.line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut all = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            all.extend(events.read(piece).expect("small"));
        }
        all.extend(events.end());
        all.into_iter().map(|data| String::from_utf8(data).expect("UTF-8")).collect()
    }

    #[test]
    fn events_are_the_same_however_their_bytes_come() {
        let text = ": hello\nevent: x\ndata: a\u{fc}\n\ndata:b\r\ndata: c\r\n\r\nid: 4\n\ndata: last";
        for size in 1..text.len() {
            assert_eq!(read(text, size), ["a\u{fc}", "b\nc", "last"], "{size}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; EVENT_BYTES / 2];
        assert_eq!(events.read(&piece), Ok(Vec::new()));
        assert_eq!(events.read(&piece), Ok(Vec::new()));
        assert_eq!(events.read(&piece), Err(TooLarge));
    }
}
