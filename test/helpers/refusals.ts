/** Refusals of a start: planned in this process as the command plans it, without the cost of a process for each. */
import assert from 'node:assert/strict';
import { OPTIONS, type OptionName } from '../../supervisor/options/table.js';
import type { ServeOptions } from '../../supervisor/plan/given-options.js';
import { planServer } from '../../supervisor/plan/plan-server.js';

export interface Refused extends Pick<ServeOptions, 'app' | 'cwd'> {
  /** Values of flags, by the names of their options. */
  readonly flags?: Readonly<Partial<Record<OptionName, string>>>;
  /** Values of `--model`. */
  readonly modelFlags?: readonly string[];
  /** Variables of the environment, meanwhile; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** The message, which the command prints behind its name before it ends with 2. Fails if the start is not refused. */
export async function refusalOf({
  flags = {},
  modelFlags = [],
  env = {},
  ...given
}: Refused): Promise<string> {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  setEnv(Object.entries(env)); // for tests that run one after the other
  try {
    const where = (name: string): string => OPTIONS[name as OptionName].flag;
    const plan = await planServer(given, { flags: { values: flags, where }, modelFlags });
    plan.store.close();
    return assert.fail('the start is not refused');
  } catch (thrown) {
    const { code, message } = thrown as { code?: unknown; message: string };
    assert.equal(code, 'SERVE_CONFIG', message);
    return message;
  } finally {
    setEnv(before);
  }
}

function setEnv(entries: readonly (readonly [name: string, value: string | undefined])[]): void {
  for (const [name, value] of entries)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
}
