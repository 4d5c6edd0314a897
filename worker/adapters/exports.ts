/** Reads and checks exports beside the app itself, which every kind of app may have. */
import { MAX_CONCURRENCY } from '../../protocol/wire/limits.js';
import { repeatOptions, type RepeatOptions } from '../api/route-options.js';
import {
  DATATYPES,
  isDatatype,
  isObject,
  kindOf,
  MAX_DIMENSIONS,
  shown,
  type Fields,
  type Signature,
  type TensorSpec,
} from '../../protocol/values/tensor.js';
import { TASKS, type Task } from '../../protocol/wire/messages.js';
import type { Exports } from './loaded-app.js';

/** Returns the `config` export. @throws a TypeError if it is not an object */
export function configOf(exports: Exports): Fields {
  const config = exports['config'] ?? {};
  if (isObject(config)) return config;
  throw new TypeError('export `config` must be an object, such as { runTimeout: "30s" }');
}

/** Splits `config` into the options that the front checks and those that say how calls may run. @throws a TypeError */
export function splitConfig(config: Fields): {
  readonly repeat: RepeatOptions;
  readonly concurrency: number;
  readonly modelOptions: Record<string, unknown>;
} {
  const { repeatable, attempts, concurrency = 1, ...modelOptions } = config;
  return {
    repeat: repeatOptions({ repeatable, attempts }, 'export `config`'),
    concurrency: checkedConcurrency(concurrency),
    modelOptions,
  };
}

function checkedConcurrency(given: unknown): number {
  if (Number.isInteger(given) && (given as number) >= 1 && (given as number) <= MAX_CONCURRENCY)
    return given as number;
  throw new TypeError(`export \`config\`: concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}`);
}

/**
 * Checks an app's `init`, or the function of that role. @throws a TypeError if its body would not run when it is called
 */
export function assertNoGenerator(init: unknown, name = 'init'): void {
  if (!/Generator/.test(Object.prototype.toString.call(init))) return;
  throw new TypeError(
    `\`${name}\` is a generator, so its body would not run. Make it a plain or an async function`,
  );
}

/** Checks the export of this name. @throws a TypeError if it exists and is not a function */
export function assertFunctionOrNone(exports: Exports, name: string): void {
  const value = exports[name];
  if (value === undefined || typeof value === 'function') return;
  throw new TypeError(`export \`${name}\` is ${typeText(value)}; make it a function or remove it`);
}

/** Names the type of a value with an article, such as `an object`, for an error message. */
export function typeText(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}

/** The app's `shutdown`, if it exports one. @throws a TypeError if it is not a function */
export function shutdownOf(exports: Exports): { shutdown?: () => unknown } {
  assertFunctionOrNone(exports, 'shutdown');
  const { shutdown } = exports;
  return typeof shutdown === 'function' ? { shutdown: (): unknown => shutdown.call(exports) } : {};
}

/** Returns the app's signature, if it exports one. @throws a TypeError that names the tensor if it is no signature */
export function signatureOf(exports: Exports): { signature?: Signature } {
  const given = exports['signature'];
  if (given === undefined) return {};
  if (!isObject(given)) throw wrong(`not ${kindOf(given)}`);
  const { inputs, outputs } = given;
  return { signature: { inputs: specsOf(inputs, 'inputs'), outputs: specsOf(outputs, 'outputs') } };
}

function wrong(problem: string): TypeError {
  const example = "{ inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }], outputs: […] }";
  return new TypeError(`export \`signature\` must be an object such as ${example}, ${problem}`);
}

function specsOf(given: unknown, key: 'inputs' | 'outputs'): readonly TensorSpec[] {
  if (!Array.isArray(given)) throw wrong(`but \`${key}\` is ${kindOf(given)}`);
  const specs = given.map((item: unknown, i) => specOf(item, `${key}[${i}]`));
  const twice = specs.find(({ name }, i) => specs.findIndex((other) => other.name === name) < i);
  if (twice === undefined) return specs;
  throw new TypeError(`export \`signature\`: \`${key}\` has ${shown(twice.name)} twice`);
}

function specOf(given: unknown, place: string): TensorSpec {
  const { name, datatype, shape } = (given ?? {}) as Fields;
  const fail = (problem: string): never => {
    throw new TypeError(`export \`signature\`: ${place}.${problem}`);
  };
  if (typeof name !== 'string' || name === '') return fail(`name must be text, not ${shown(name)}`);
  if (!isDatatype(datatype)) return fail(`datatype is ${shown(datatype)}; there are ${DATATYPES.join(', ')}`);
  if (shape === undefined) return { name, datatype };
  const isShape = Array.isArray(shape) && shape.length <= MAX_DIMENSIONS && Array.from(shape).every(isSize);
  if (!isShape) return fail(`shape must be a list of sizes, with -1 for a free one, not ${shown(shape)}`);
  return { name, datatype, shape: [...(shape as readonly number[])] };
}

function isSize(size: unknown): boolean {
  return Number.isSafeInteger(size) && (size as number) >= -1;
}

/** The app's task, if it exports one. @throws a TypeError if it is none that this server knows */
export function taskOf(exports: Exports): { task?: Task; tokenInput?: true } {
  const { task: given, tokenInput } = exports;
  if (given === undefined) return {};
  const task = TASKS.find((one) => one === given);
  if (task === undefined)
    throw new TypeError(`export \`task\` is ${shown(given)}; there are ${TASKS.join(', ')}`);
  return tokenInput === true ? { task, tokenInput } : { task };
}
