/** Asks a plan for its target while a body arrives. */
import { MAX_PREFIX_BYTES, type CallPlan, type Target } from './call-plan.js';

/** It is asked again once twice as much is there, so that a body in chunks of one byte costs no more than others. */
const FIRST_LOOK_BYTES = 1024;

export class TargetSearch {
  readonly #find: CallPlan['target'];
  #target: Target | null = null;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  #lookAtBytes = 0;

  constructor(target: CallPlan['target']) {
    this.#find = target;
    if (typeof target !== 'function') this.#target = target;
  }

  /** The target if it is known by now. Throws what the plan refuses the call with. */
  read(piece: Buffer): Target | null {
    if (this.#target !== null) return this.#target;
    this.keep(piece);
    const isLast = this.#bytes === MAX_PREFIX_BYTES;
    if (isLast || this.#bytes >= this.#lookAtBytes) this.#look(isLast);
    return this.#target;
  }

  /** Keeps a piece without a look at it: nobody who may not call is told what there is. */
  keep(piece: Buffer): void {
    const kept = piece.subarray(0, MAX_PREFIX_BYTES - this.#bytes);
    if (kept.length === 0) return;
    this.#pieces.push(kept);
    this.#bytes += kept.length;
  }

  /** The body has ended. */
  end(): Target {
    if (this.#target === null) this.#look(true);
    return this.#target as unknown as Target;
  }

  #look(isLast: boolean): void {
    const prefix = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces.splice(0, Infinity, prefix);
    this.#lookAtBytes = Math.max(FIRST_LOOK_BYTES, 2 * this.#bytes);
    if (typeof this.#find !== 'function') return;
    const found = this.#find(prefix, isLast);
    if (found !== 'more') this.#target = found;
    else if (isLast) throw new Error('a plan must name its target once its body has ended');
  }
}
