//! From frame to frame, by the tables of `.eh_frame`, and by frame pointers where a function has none.

use crate::memory::StackMemory;
use crate::module::{Modules, Section};
use crate::registers::{Processor, ThreadRegisters};
use crate::{FRAMES_MAX, StackFrame};
use gimli::{CfaRule, Evaluation, EvaluationResult, RegisterRule, UnwindContext, UnwindTableRow, Value};

/// Steps of an expression in a table: real ones have less than ten.
const STEPS_MAX: u32 = 1000;

/// All frames, innermost first.
pub fn walk(first: &ThreadRegisters, memory: &impl StackMemory, modules: &mut Modules) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    let mut registers = first.clone();
    // A call stands before where it returns to. Where a signal came in it is the instruction itself.
    let mut is_exact = true;
    while frames.len() < FRAMES_MAX {
        let address = registers.instruction.wrapping_sub(u64::from(!is_exact));
        frames.extend(modules.name(address));
        let stack = registers.value(registers.processor.stack());
        let step = match by_table(&registers, address, memory, modules) {
            Some(step) => Some(step),
            None if frames.len() <= 1 && !modules.has(address) => after_bad_call(&registers, memory),
            None => by_frame_pointer(&registers, memory),
        };
        let Some((next, was_signal)) = step else { break };
        // Each caller's frame is farther up; only a handler may have had another stack.
        let is_up = next.value(next.processor.stack()) > stack;
        if next.instruction == 0 || !(is_up || was_signal) {
            break;
        }
        (registers, is_exact) = (next, was_signal);
    }
    frames.truncate(FRAMES_MAX);
    frames
}

/// The caller's registers, and whether a signal called.
type Step = Option<(ThreadRegisters, bool)>;

fn by_table(registers: &ThreadRegisters, address: u64, memory: &impl StackMemory, modules: &mut Modules) -> Step {
    let module = modules.at(address)?;
    let address = module.in_file(address)?;
    let (section, bases) = module.tables()?;
    let fde = module.entry(&section, &bases, address)?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
    let frame = CallerRules { registers, memory, section: &section, encoding: fde.cie().encoding() };
    let caller = frame.caller(row, fde.cie().return_address_register().0)?;
    Some((caller, fde.is_signal_trampoline()))
}

struct CallerRules<'a, M> {
    registers: &'a ThreadRegisters,
    memory: &'a M,
    section: &'a gimli::EhFrame<Section<'a>>,
    encoding: gimli::Encoding,
}

impl<M: StackMemory> CallerRules<'_, M> {
    fn caller(&self, row: &UnwindTableRow<usize>, back: u16) -> Option<ThreadRegisters> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers.value(register.0)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None)?,
        };
        let mut caller = self.registers.clone();
        caller.set(caller.processor.stack(), Some(cfa));
        for number in self.registers.numbers() {
            let Some(rule) = row.register(gimli::Register(number)) else { continue };
            let value = match rule {
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => self.memory.long_at(cfa.wrapping_add_signed(offset)),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
                RegisterRule::Register(other) => self.registers.value(other.0),
                RegisterRule::Expression(expression) => {
                    self.evaluate(&expression, Some(cfa)).and_then(|address| self.memory.long_at(address))
                }
                RegisterRule::ValExpression(expression) => self.evaluate(&expression, Some(cfa)),
                RegisterRule::Constant(value) => Some(value),
                _ => None,
            };
            caller.set(number, value);
        }
        let has_rule = row.register(gimli::Register(back)).is_some();
        if self.registers.is_only_return(back) && !has_rule {
            return None;
        }
        caller.instruction = caller.value(back)?;
        Some(caller)
    }

    fn evaluate(&self, expression: &gimli::UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let expression = expression.get(self.section).ok()?;
        let mut evaluation: Evaluation<Section> = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(STEPS_MAX);
        if let Some(value) = first {
            evaluation.set_initial_value(value);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.value(register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = self.memory.long_at(address)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            gimli::Location::Address { address } => Some(address),
            gimli::Location::Value { value: Value::Generic(value) } => Some(value),
            _ => None,
        }
    }
}

/// Nothing is where the thread was to go on: it has called what is no function, and where it came from stands on top.
fn after_bad_call(registers: &ThreadRegisters, memory: &impl StackMemory) -> Step {
    let mut caller = registers.clone();
    match registers.processor {
        Processor::X86 => {
            let stack = registers.value(registers.processor.stack())?;
            caller.instruction = memory.long_at(stack)?;
            caller.set(registers.processor.stack(), Some(stack.wrapping_add(8)));
        }
        Processor::Arm => {
            caller.instruction = registers.value(30)?;
            // Nothing was put on the stack, which shall grow all the same.
            let stack = registers.value(registers.processor.stack())?;
            caller.set(registers.processor.stack(), Some(stack.wrapping_add(1)));
        }
    }
    Some((caller, false))
}

/// On both machines the caller's frame pointer stands where this one leads, and behind it where the caller goes on.
fn by_frame_pointer(registers: &ThreadRegisters, memory: &impl StackMemory) -> Step {
    let frame = registers.value(registers.processor.frame())?;
    let mut caller = registers.clone();
    caller.set(registers.processor.frame(), memory.long_at(frame));
    caller.set(registers.processor.stack(), Some(frame.wrapping_add(16)));
    caller.instruction = memory.long_at(frame.wrapping_add(8))?;
    Some((caller, false))
}
