/** What is said of one option. */
import type {
  ModelOptionTypes,
  OperatorOptionTypes,
  ServerOptionTypes,
} from '../../protocol/option-types.js';

/**
 * Whose an option is. `server`: one value for the whole server. `operator`: one for each model, given by whoever runs the
 * server. `model`: one for each model, which its app may also set in its `config`.
 */
export type OptionScope = 'server' | 'operator' | 'model';

export interface OptionSpec<T, S extends OptionScope = OptionScope> {
  readonly scope: S;
  readonly flag: string;
  /** The text after the flag in the help; null for a switch. */
  readonly value: string | null;
  /** The meaning of the option, and the reason for its default. */
  readonly help: string;
  readonly defaultText: string;
  readonly default: T;
  /** On the command line it may be given several times; the values come as an array. */
  readonly repeats?: true;
  /** No error, warning or help shows a value of it. */
  readonly secret?: true;
  /** @throws NotAllowed */
  readonly parse: (raw: unknown) => T;
}

/**
 * The compiler's proof that the types of `serve()` and of `config` name the options of the table, which has all of these,
 * and no others: each of its groups has some of these.
 */
export type EveryOption = Specs<ServerOptionName, 'server'> &
  Specs<OperatorOptionName, 'operator'> &
  Specs<ModelOptionName, 'model'>;

export type SomeOptions = Partial<EveryOption>;

type Specs<Name extends string, S extends OptionScope> = Readonly<Record<Name, OptionSpec<unknown, S>>>;

export type ServerOptionName = keyof ServerOptionTypes<unknown>;
export type OperatorOptionName = keyof OperatorOptionTypes;
export type ModelOptionName = keyof ModelOptionTypes<unknown>;

export const DURATION = '<duration>';
export const MIB = 1024 ** 2;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;

/** An option without its scope, which the name of the function says. */
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
