//! The registers of a thread, by the numbers that DWARF gives them.

use crate::bytes::long;

/// More than either machine has.
const COUNT: usize = 34;

/// The machines that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    X86,
    Arm,
}

/// What a thread was about to do. A register that is not known is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRegisters {
    pub processor: Processor,
    pub instruction: u64,
    values: [Option<u64>; COUNT],
}

/// Where the kernel writes the x86 registers of a core, by their DWARF numbers.
const X86_PLACES: [usize; 16] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];
const X86_INSTRUCTION: usize = 16;
const ARM_INSTRUCTION: usize = 32;
/// Of x86, a register of its own in tables only.
const X86_RETURN: u16 = 16;

impl Processor {
    /// By the number in the head of an ELF file.
    pub fn of_elf(machine: u16) -> Option<Self> {
        match machine {
            62 => Some(Self::X86),
            183 => Some(Self::Arm),
            _ => None,
        }
    }

    pub fn stack(self) -> u16 {
        if self == Self::X86 { 7 } else { 31 }
    }

    pub fn frame(self) -> u16 {
        if self == Self::X86 { 6 } else { 29 }
    }
}

impl ThreadRegisters {
    /// As the kernel writes them in a core, and to who traces.
    pub fn of_core(processor: Processor, bytes: &[u8]) -> Option<Self> {
        let mut values = [None; COUNT];
        let instruction = match processor {
            Processor::X86 => {
                for (value, place) in values.iter_mut().zip(X86_PLACES) {
                    *value = Some(long(bytes, place * 8)?);
                }
                X86_INSTRUCTION
            }
            Processor::Arm => {
                for (place, value) in values.iter_mut().take(32).enumerate() {
                    *value = Some(long(bytes, place * 8)?);
                }
                ARM_INSTRUCTION
            }
        };
        Some(Self { processor, instruction: long(bytes, instruction * 8)?, values })
    }

    /// By the numbers of DWARF, for the processor with this number in ELF files.
    pub fn of_numbers(elf_machine: u16, registers: &[u64], instruction: u64) -> Option<Self> {
        let processor = Processor::of_elf(elf_machine)?;
        let mut values = [None; COUNT];
        let count = if processor == Processor::X86 { X86_PLACES.len() } else { 32 };
        for (value, given) in values.iter_mut().zip(registers).take(count) {
            *value = Some(*given);
        }
        Some(Self { processor, instruction, values })
    }

    pub fn value(&self, number: u16) -> Option<u64> {
        self.values.get(usize::from(number)).copied().flatten()
    }

    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(place) = self.values.get_mut(usize::from(number)) {
            *place = value;
        }
    }

    pub fn numbers(&self) -> impl Iterator<Item = u16> {
        0..COUNT as u16
    }

    /// Whether this one is not a register of the machine but where the caller goes on.
    pub fn is_only_return(&self, number: u16) -> bool {
        self.processor == Processor::X86 && number == X86_RETURN
    }
}
