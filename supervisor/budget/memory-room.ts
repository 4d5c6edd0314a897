/** Memory for starts, as the spawn gate and the slots see it. */
import type { ServeError } from '../../protocol/errors.js';

/** A start that waits at the gate, or is under way. */
export interface RoomStart {
  readonly device: string;
  readonly model: string;
  /** Whether the present worker of its slot stays until this one is ready. */
  readonly isRenewal: boolean;
  /** Whether a worker of its slot was ready before, and is gone. */
  readonly isReplacement: boolean;
  /** Whether its model was ready before and has no ready worker now. */
  isModelDown(): boolean;
  /** Whether the last start of its slot ran out of memory, and a worker leaves for this one. */
  readonly afterLeaving: boolean;
  /** Its process; null until it was started. */
  pid(): number | null;
  /** There will never be memory for it. */
  refuse(error: ServeError): void;
  /** It is not needed any more. */
  withdraw(): void;
}

export interface MemoryRoom {
  /** A start has come to the gate. */
  enter(start: RoomStart): void;
  /** Whether there is memory for this start. */
  mayGo(start: RoomStart): boolean;
  /** Names in words the memory that a start waits for; asked of a start that may not go. */
  lackOf(start: RoomStart): string;
  /** A start is over, or was given up. */
  leave(start: RoomStart): void;
  /** Calls `listener` when a start may go that could not before. */
  onRoom(listener: () => void): void;
}

/** Without a budget there is always memory. */
export const NO_BUDGET: MemoryRoom = {
  enter() {},
  mayGo: () => true,
  lackOf: () => '',
  leave() {},
  onRoom() {},
};
