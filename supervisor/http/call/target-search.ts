/** Asks a plan for its target while a body arrives. */
import { JoinedPieces } from '../../memory/joined-pieces.js';
import { MAX_PREFIX_BYTES, type CallPlan, type Target } from './call-plan.js';

/** It is asked again once twice as much is there, so that a body in chunks of one byte costs no more than others. */
const FIRST_LOOK_BYTES = 1024;

export class TargetSearch {
  readonly #find: CallPlan['target'];
  #target: Target | null = null;
  readonly #prefix = new JoinedPieces();
  #lookAtBytes = 0;

  constructor(target: CallPlan['target']) {
    this.#find = target;
    if (typeof target !== 'function') this.#target = target;
  }

  /** The target if it is known by now. Throws what the plan refuses the call with. */
  read(piece: Buffer): Target | null {
    if (this.#target !== null) return this.#target;
    this.keep(piece);
    const { bytes } = this.#prefix;
    const isLast = bytes === MAX_PREFIX_BYTES;
    if (isLast || bytes >= this.#lookAtBytes) this.#look(isLast);
    return this.#target;
  }

  /** Keeps a piece without a look at it: nobody who may not call is told what there is. */
  keep(piece: Buffer): void {
    const room = MAX_PREFIX_BYTES - this.#prefix.bytes;
    if (room > 0) this.#prefix.add(piece.length <= room ? piece : piece.subarray(0, room));
  }

  /** The body has ended. */
  end(): Target {
    if (this.#target === null) this.#look(true);
    return this.#target as unknown as Target;
  }

  #look(isLast: boolean): void {
    this.#lookAtBytes = Math.max(FIRST_LOOK_BYTES, 2 * this.#prefix.bytes);
    if (typeof this.#find !== 'function') return;
    const found = this.#find(this.#prefix.view, isLast);
    if (found !== 'more') {
      this.#target = found;
      this.#prefix.take();
    } else if (isLast) throw new Error('a plan must name its target once its body has ended');
  }
}
