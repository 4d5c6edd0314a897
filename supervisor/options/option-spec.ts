/** One row of the option table: its type, the forms of values that many options share, and helpers to write rows. */
import type {
  ModelOptionTypes,
  OperatorOptionTypes,
  ServerOptionTypes,
} from '../../protocol/option-types.js';
import { parseHost, parsePort } from './address.js';
import {
  parseBytes,
  parseChoice,
  parseDurationMs,
  parsePositiveMs,
  parseSwitch,
  parseText,
  parseWhole,
} from './units.js';

/**
 * Scope of an option. `server`: one value for the whole server. `operator`: one per model, set by the operator only.
 * `model`: one per model, which its app may also set in its `config`.
 */
export type OptionScope = 'server' | 'operator' | 'model';

/** The form in which the values of an option are written. */
interface ValueForm<T> {
  /** The text after the flag in the help; null for a switch. */
  readonly value: string | null;
  /** @throws NotAllowed */
  readonly parse: (raw: unknown) => T;
}

interface Described {
  /** Meaning of the option and reason for its default. */
  readonly help: string;
  /** The flag may be given several times; `parse` then gets an array. */
  readonly repeats?: true;
  /** Errors, warnings and help never show its value. */
  readonly secret?: true;
}

export interface OptionSpec<T, S extends OptionScope = OptionScope> extends ValueForm<T>, Described {
  readonly scope: S;
  readonly defaultText: string;
  readonly default: T;
}

/**
 * Lets the compiler prove that the types of `serve()` and `config` name exactly the options of the table. The table has
 * all of these; each of its groups has some (`SomeOptions`).
 */
export type EveryOption = Specs<ServerOptionName, 'server'> &
  Specs<OperatorOptionName, 'operator'> &
  Specs<ModelOptionName, 'model'>;

export type SomeOptions = Partial<EveryOption>;

type Specs<Name extends string, S extends OptionScope> = Readonly<Record<Name, OptionSpec<unknown, S>>>;

export type ServerOptionName = keyof ServerOptionTypes<unknown>;
export type OperatorOptionName = keyof OperatorOptionTypes<unknown>;
export type ModelOptionName = keyof ModelOptionTypes<unknown>;

export const serverOption = rowsOf('server');
export const operatorOption = rowsOf('operator');
export const modelOption = rowsOf('model');

/**
 * Makes rows of one scope. `default` is written as a person would give it; `unset` says in words what happens without the
 * option, whose value is then `otherwise`, or null.
 */
function rowsOf<S extends OptionScope>(scope: S) {
  function row<T>(given: ValueForm<T> & Described & { default: string }): OptionSpec<T, S>;
  function row<T, D = null>(
    given: ValueForm<T> & Described & { unset: string; otherwise?: D },
  ): OptionSpec<T | NoInfer<D>, S>;
  function row({
    unset = '',
    otherwise = null,
    default: text,
    ...rest
  }: ValueForm<unknown> & Described & { default?: string; unset?: string; otherwise?: unknown }): OptionSpec<
    unknown,
    S
  > {
    return text === undefined
      ? { ...rest, scope, defaultText: unset, default: otherwise }
      : { ...rest, scope, defaultText: text, default: rest.parse(text) };
  }
  return row;
}

export const DURATION = { value: '<duration>', parse: parseDurationMs };
export const POSITIVE_DURATION = { value: DURATION.value, parse: parsePositiveMs };
export const SIZE = { value: '<size>', parse: parseBytes };
export const HOST = { value: '<address>', parse: parseHost };
export const PORT = { value: '<port>', parse: parsePort };
export const FILE = text('<path>', 'the path of a file');
export const FOLDER = text('<folder>', 'the path of a folder');
export const SWITCH = { value: null, parse: parseSwitch, unset: 'off', otherwise: false };

/** The form of any text that is not empty; `allowed` describes it. */
export function text(value: string, allowed: string): ValueForm<string> {
  return { value, parse: (raw) => parseText(raw, allowed) };
}

/** The form of a whole number between `min` and `max`. */
export function whole(min: number, max: number): ValueForm<number> {
  return { value: '<n>', parse: (raw) => parseWhole(raw, min, max) };
}

/** The form of one of `choices`; `value` is its text in the help. */
export function choice<const T extends string>(value: string, choices: readonly T[]): ValueForm<T> {
  return { value, parse: (raw) => parseChoice(raw, choices) };
}
