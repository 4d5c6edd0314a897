/** Finds the model of a call: the one that the request names, the default one, or the one that the body names while it arrives. */
import { ServeError } from '../../../protocol/errors.js';
import { JoinedPieces } from '../../memory/joined-pieces.js';
import type { Model } from '../../models/model.js';
import type { ModelRef, Models } from '../../models/models.js';
import type { RequestContext } from '../request/request-context.js';
import { MAX_PREFIX_BYTES, type CallPlan, type Target } from './call-plan.js';

/**
 * Finds a model. One that is being unregistered becomes the context's model, for the log. @throws
 * SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): Model {
  try {
    return models.find(ref);
  } catch (thrown) {
    context.model = models.leaving(ref);
    throw thrown;
  }
}

/** Sets the context's model for the log, if there is one; a model that is being unregistered counts. */
export function noteModel(context: Pick<RequestContext, 'model'>, models: Models, ref: ModelRef): void {
  try {
    context.model = findModel(context, models, ref);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
  }
}

/** @throws SERVE_MODEL_NOT_FOUND if no model answers on `/`; the message lists the models of the server */
export function defaultModel(models: Models): Model {
  if (models.default !== null) return models.default;
  const names = [...new Set([...models.all()].map(({ spec }) => spec.name))];
  throw new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `The request names no model, and no model answers on /; this server has ${names.join(', ')}.`,
  );
}

/** The search is repeated only when the prefix has doubled, so that a body in chunks of one byte costs no more. */
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

  /** Adds a piece; returns the target if it is known now, else null. Throws the plan's refusal. */
  read(piece: Buffer): Target | null {
    if (this.#target !== null) return this.#target;
    this.keep(piece);
    const { bytes } = this.#prefix;
    const isLast = bytes === MAX_PREFIX_BYTES;
    if (isLast || bytes >= this.#lookAtBytes) this.#look(isLast);
    return this.#target;
  }

  /** Adds a piece without searching, so that a client without a valid key does not learn which models exist. */
  keep(piece: Buffer): void {
    const room = MAX_PREFIX_BYTES - this.#prefix.bytes;
    if (room > 0) this.#prefix.add(piece.length <= room ? piece : piece.subarray(0, room));
  }

  /** Returns the target of a body that has ended. Throws the plan's refusal. */
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
