/** Starts of workers that exist only for the gate and the memory budget. */
import type { Start } from '../../../supervisor/budget/facts.js';
import type { SpawnGate } from '../../../supervisor/slots/spawn-gate.js';

export function startOf(given: Partial<Start> & { readonly model: string }): Start {
  return {
    device: 'cpu',
    sinceMs: performance.now(),
    isRetry: false,
    isRenewal: false,
    isReplacement: false,
    afterLeaving: false,
    pid: null,
    granted: null,
    isLogged: false,
    wentWhileDown: false,
    isModelDown: () => false,
    go() {},
    refuse() {},
    withdraw() {},
    ...given,
  };
}

/** The start comes to the gate, and is allowed by a call of `go`. Returns a function that ends it. */
export function enter(gate: SpawnGate, start: Start, go: () => void = () => {}): () => void {
  start.go = go;
  gate.enter(start);
  return () => gate.leave(start);
}
