/**
 * The table of all options: names, meaning, default with its reason, allowed values. The command line, the environment,
 * the config file, the app's `config`, `serve()` and docs/options.md all use it. Each group of the help and of
 * docs/options.md is a file in `groups/`.
 */
import { LISTENING, ACCESS, MANAGEMENT } from './groups/listening.js';
import { MODELS } from './groups/models.js';
import { WORKERS } from './groups/workers.js';
import { CALLS, JOBS, CLIENTS, WEBHOOKS } from './groups/calls.js';
import { STOPPING, DEVELOPMENT, LOGS, METRICS } from './groups/running.js';
import {
  DURATION,
  type EveryOption,
  type ModelOptionName,
  type OperatorOptionName,
  type ServerOptionName,
} from './option-spec.js';

/** Groups in the order of the help and of docs/options.md. */
const GROUPS = {
  Listening: LISTENING,
  Access: ACCESS,
  Models: MODELS,
  Management: MANAGEMENT,
  Workers: WORKERS,
  Calls: CALLS,
  Jobs: JOBS,
  Clients: CLIENTS,
  Stopping: STOPPING,
  Development: DEVELOPMENT,
  Logs: LOGS,
  Metrics: METRICS,
  Webhooks: WEBHOOKS,
} as const;

export type OptionGroup = keyof typeof GROUPS;

export const OPTION_GROUPS = Object.keys(GROUPS) as OptionGroup[];

const ROWS = {
  ...LISTENING,
  ...ACCESS,
  ...MODELS,
  ...MANAGEMENT,
  ...WORKERS,
  ...CALLS,
  ...JOBS,
  ...CLIENTS,
  ...STOPPING,
  ...DEVELOPMENT,
  ...LOGS,
  ...METRICS,
  ...WEBHOOKS,
} as const satisfies EveryOption;

export type OptionName = keyof typeof ROWS;

/** The rows with their flags: `runTimeout` is `--run-timeout`; `--no-` begins the flag of a switch that is on by default. */
export const OPTIONS = withFlags(ROWS);
/** All options. */
export type Options = { readonly [K in OptionName]: (typeof OPTIONS)[K]['default'] };

/** Options of the whole server; they never change while it runs. */
export type ServerOptions = Pick<Options, ServerOptionName>;

/** Options of one model: those that only the operator sets, and those that its app may set too. */
export type ModelOptions = Pick<Options, OperatorOptionName | ModelOptionName>;

function withFlags<R extends EveryOption>(
  rows: R,
): { readonly [K in keyof R]: R[K] & { readonly flag: string } } {
  const named = Object.entries(rows).map(([name, row]) => {
    const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [name, { ...row, flag: row.default === true ? `--no-${words}` : `--${words}` }];
  });
  return Object.fromEntries(named) as ReturnType<typeof withFlags<R>>;
}

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

export function optionsOf(group: OptionGroup): OptionName[] {
  return Object.keys(GROUPS[group]) as OptionName[];
}

/** Whether the option's value is a duration. */
export function isDuration(name: OptionName): boolean {
  return OPTIONS[name].value === DURATION.value;
}

/** `runTimeout` is BANANA_RUN_TIMEOUT in the environment. */
export function envName(name: OptionName): string {
  return `BANANA_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
