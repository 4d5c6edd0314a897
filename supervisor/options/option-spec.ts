/** One row of the option table: its type, and helpers to write it. */
import type {
  ModelOptionTypes,
  OperatorOptionTypes,
  ServerOptionTypes,
} from '../../protocol/option-types.js';

/**
 * Scope of an option. `server`: one value for the whole server. `operator`: one per model, set by the operator only.
 * `model`: one per model, which its app may also set in its `config`.
 */
export type OptionScope = 'server' | 'operator' | 'model';

export interface OptionSpec<T, S extends OptionScope = OptionScope> {
  readonly scope: S;
  readonly flag: string;
  /** The text after the flag in the help; null for a switch. */
  readonly value: string | null;
  /** Meaning of the option and reason for its default. */
  readonly help: string;
  readonly defaultText: string;
  readonly default: T;
  /** The flag may be given several times; `parse` then gets an array. */
  readonly repeats?: true;
  /** Errors, warnings and help never show its value. */
  readonly secret?: true;
  /** @throws NotAllowed */
  readonly parse: (raw: unknown) => T;
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

export const DURATION = '<duration>';
export const MIB = 1024 ** 2;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;

/** An option without its scope, which the functions below add. */
type Described<T> = Omit<OptionSpec<T>, 'scope'>;

export function serverOption<T>(described: Described<T>): OptionSpec<T, 'server'> {
  return { ...described, scope: 'server' };
}

export function operatorOption<T>(described: Described<T>): OptionSpec<T, 'operator'> {
  return { ...described, scope: 'operator' };
}

export function modelOption<T>(described: Described<T>): OptionSpec<T, 'model'> {
  return { ...described, scope: 'model' };
}
