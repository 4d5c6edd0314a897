/** Finds the model of a call: the one that the request names, the default one, or the one that its body names. */
import { ServeError } from '../../../protocol/errors.js';
import { decodeText } from '../../../protocol/text/charsets.js';
import { paramsOf } from '../../../protocol/text/headers.js';
import { partsOf } from '../../../protocol/text/multipart-parts.js';
import { JoinedPieces } from '../../memory/joined-pieces.js';
import type { Model } from '../../models/model.js';
import type { ModelRef, Models } from '../../models/models.js';
import type { RequestContext } from '../request/request-context.js';
import { readString, scanTopLevelFields } from '../json/top-level-fields.js';
import { MAX_PREFIX_BYTES, type CallPlan, type FindTarget, type Target } from './call-plan.js';

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

/** Names of models, each once however many versions it has. */
export function modelNames(models: Models): string[] {
  return [...new Set(Array.from(models.all(), ({ spec }) => spec.name))];
}

/** @throws SERVE_MODEL_NOT_FOUND if no model answers on `/`; the message lists the models of the server */
export function defaultModel(models: Models): Model {
  if (models.default !== null) return models.default;
  throw new ServeError(
    'SERVE_MODEL_NOT_FOUND',
    `The request names no model, and no model answers on /; this server has ${modelNames(models).join(', ')}.`,
  );
}

/** The field's first value; `absent` if it is not there, or is no text; `more` if more of the body is needed to know. */
type FoundField = { readonly value: string } | 'absent' | 'more';

/** Finds one field in the beginning of a body. `isWhole`: the body ends where `prefix` does. */
export type FindField = (prefix: Buffer, isWhole: boolean) => FoundField;

/**
 * Finds the target of a call by the name of its model, which is a field of the body. `targetOf` gets null for a body that has
 * no such field in its first MAX_PREFIX_BYTES; it may throw a ServeError.
 */
export function targetNamedBy(find: FindField, targetOf: (name: string | null) => Target): FindTarget {
  return (prefix, isLast) => {
    const found = find(prefix, isLast && prefix.length < MAX_PREFIX_BYTES);
    if (found === 'more' && !isLast) return 'more';
    return targetOf(typeof found === 'object' ? found.value : null);
  };
}

/** Finds a field of a JSON object, whatever the content type says. Malformed JSON is left to the reader of the whole body. */
export function jsonField(name: string): FindField {
  return (prefix) => {
    const json = scanTopLevelFields(prefix, [name]).fields.get(name); // a prefix looks malformed; it has its complete fields
    if (json === undefined) return 'more';
    const value = readString(json, MAX_NAME_BYTES);
    return value === null ? 'absent' : { value };
  };
}

/** Maximum size of a name in JSON, as written. */
const MAX_NAME_BYTES = 4096;

/**
 * Finds a field of a form, with the parser that reads the whole form in the worker; a field that is not complete is not
 * found. Malformed forms are left to the worker, which reports them. Null if a body of this type is not a form.
 */
export function formField(contentType: string, name: string): FindField | null {
  const type = paramsOf(contentType).value;
  if (type === 'multipart/form-data') return (prefix) => inMultipart(prefix, contentType, name);
  if (type === 'application/x-www-form-urlencoded')
    return (prefix, isWhole) => inUrlEncoded(prefix, isWhole, name);
  return null;
}

function inMultipart(prefix: Buffer, contentType: string, name: string): FoundField {
  try {
    for (const { disposition, contentType: type, content } of partsOf(prefix, contentType))
      if (disposition.params.get('name') === name)
        return { value: decodeText(content, type.params.get('charset') ?? '') };
    return 'absent';
  } catch {
    return 'more'; // the part ends with the prefix, or it is malformed
  }
}

const [AND, EQUALS] = [0x26, 0x3d];

function inUrlEncoded(prefix: Buffer, isWhole: boolean, name: string): FoundField {
  for (let start = 0; ;) {
    const and = prefix.indexOf(AND, start);
    if (and < 0 && !isWhole) return 'more';
    const pair = prefix.subarray(start, and < 0 ? prefix.length : and);
    const value = mayBeNamed(pair, name) ? new URLSearchParams(pair.toString()).get(name) : null;
    if (value !== null) return { value };
    if (and < 0) return 'absent';
    start = and + 1;
  }
}

/** Whether the pair may have this name: every character of a name is one byte, or three if it is escaped. */
function mayBeNamed(pair: Buffer, name: string): boolean {
  const equals = pair.indexOf(EQUALS);
  const bytes = equals < 0 ? pair.length : equals;
  return bytes >= name.length && bytes <= 3 * name.length;
}

/** The search is repeated only when the prefix has doubled, so that a body in chunks of one byte costs no more. */
const FIRST_LOOK_BYTES = 1024;

/** Looks for the target of a call in its body while the body arrives. */
export class TargetSearch {
  readonly #find: CallPlan['target'];
  #target: Target | null = null;
  readonly #prefix = new JoinedPieces();
  #lookAtBytes = 0;

  constructor(target: CallPlan['target']) {
    this.#find = target;
    if (typeof target !== 'function') this.#target = target;
  }

  /**
   * Adds a piece; returns the target if it is known now, else null. Without `mayLook` it is only kept, so that a client
   * without a valid key does not learn which models exist. Throws the plan's refusal.
   */
  read(piece: Buffer, mayLook: boolean): Target | null {
    const room = MAX_PREFIX_BYTES - this.#prefix.bytes;
    if (this.#target === null && room > 0) this.#prefix.add(piece.subarray(0, room));
    if (!mayLook) return null;
    const { bytes } = this.#prefix;
    const isLast = bytes === MAX_PREFIX_BYTES;
    if (this.#target === null && (isLast || bytes >= this.#lookAtBytes)) this.#look(isLast);
    return this.#target;
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
