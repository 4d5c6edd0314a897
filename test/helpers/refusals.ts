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
  /** Variables of the environment, meanwhile. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The message, which the command prints behind its name before it ends with 2. Fails if the start is not refused. */
export async function refusalOf({ flags = {}, modelFlags = [], env = {}, ...given }: Refused): Promise<string> {
  Object.assign(process.env, env); // for tests that run one after the other
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
    for (const name of Object.keys(env)) delete process.env[name];
  }
}
