/** A start of a worker that exists only for the gate. */
import type { Start } from '../../../supervisor/slots/spawn-gate.js';

export function startOf(given: Pick<Start, 'device' | 'model' | 'isRetry'> & Partial<Start>): Start {
  return {
    isRenewal: false,
    isReplacement: false,
    isModelDown: () => false,
    afterLeaving: false,
    pid: () => null,
    refuse() {},
    withdraw() {},
    ...given,
  };
}
