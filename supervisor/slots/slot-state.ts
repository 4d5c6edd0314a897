/** The states of a slot; each carries only what is true in it. */
import type { ServeError } from '../../protocol/errors.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

export type SlotState =
  | { readonly name: 'waiting' }
  | { readonly name: 'live'; readonly worker: WorkerHandle }
  | { readonly name: 'renewing'; readonly worker: WorkerHandle; readonly next: WorkerHandle | null }
  | { readonly name: 'replacing'; readonly worker: WorkerHandle }
  | { readonly name: 'backoff'; readonly untilMs: number }
  | { readonly name: 'latched'; readonly error: ServeError }
  | { readonly name: 'closing'; readonly worker: WorkerHandle }
  | { readonly name: 'closed' };

/** The states, in the words of docs/lifecycle.md. */
export const SLOT_STATES: Readonly<Record<SlotState['name'], string>> = {
  waiting: 'Its turn to start has not come.',
  live: 'It has a worker.',
  renewing: 'Its worker goes on until the next one is ready.',
  replacing: 'Its worker ends its calls and goes; the next one starts then.',
  backoff: 'Its worker died; the next start is set.',
  latched: 'Its workers keep dying, or can never start: none is started again.',
  closing: 'It is given up, or the server stops; its worker ends its work.',
  closed: 'It was given up, or the server has stopped.',
};
