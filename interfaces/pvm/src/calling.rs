//! Calling a handler of the program.

use crate::handlers::PvmHandlerCall;
use crate::library::library;

impl PvmHandlerCall {
    /// Calls the handler, with both active buffers put aside.
    pub fn run(self) {
        let mut library = library();
        let mut buffer = self.buffer;
        if let Some((_, message, outcome, context)) = library.handlers.taken.take() {
            let Some(incoming) = library.take("pvm_recv", message, &outcome, context) else { return };
            buffer = library.buffers.accept(incoming);
        }
        let receives = library.buffers.set_active_receive(buffer);
        let sends = library.buffers.set_active_send(0);
        library.handlers.running = true;
        drop(library);
        (self.handler.function)(buffer);
        let mut library = crate::library::library();
        library.handlers.running = false;
        let buffers = &mut library.buffers;
        for (before, restores) in [(receives, true), (sends, false)] {
            let Ok(before) = before else { continue };
            let left = if restores { buffers.set_active_receive(before) } else { buffers.set_active_send(before) };
            // The handler's message goes, and what it has made to send.
            if let Ok(left) = left
                && left > 0
            {
                let _ = buffers.free(left);
            }
        }
    }
}
