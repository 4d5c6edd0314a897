/** Finds the interpreter of an app: the first existing one (`places.ts`), which must run and be new enough. */
import { configError } from '../../../protocol/errors.js';
import { askInterpreter, NoInterpreter, type Interpreter } from './ask-interpreter.js';
import { interpreterPlaces, type InterpreterPlace, type InterpreterWish } from './places.js';

/** The oldest version that the worker supports. */
const LEAST = [3, 8] as const;
const LEAST_TEXT = LEAST.join('.');

export interface FoundInterpreter extends Interpreter {
  /** Environments that exist but were not used, with reasons. */
  readonly warnings: readonly string[];
}

/** `app`: for errors. @throws SERVE_CONFIG with one line that lists all attempts, or the reason of `stop` */
export async function findInterpreter(app: string, wish: InterpreterWish): Promise<FoundInterpreter> {
  const { env, stop } = wish;
  const tried: InterpreterPlace[] = [];
  for (const place of interpreterPlaces(wish)) {
    tried.push(place);
    if (place.program === null) continue;
    const answer = askInterpreter(place.program, env, { stop });
    const found = await answer.catch((problem: unknown) => problem as Error);
    if ('version' in found && isNewEnough(found.version))
      return { ...found, warnings: tried.flatMap(({ warning = [] }) => warning) };
    if (!('version' in found) && !(found instanceof NoInterpreter)) throw found;
    const what = 'version' in found ? `is Python ${found.version}` : found.message;
    throw configError(
      `${app}: it needs Python ${LEAST_TEXT} or newer, and ${textOf(place)} ${what}. ${cureOf(tried, wish)}`,
    );
  }
  const where = wish.given === null ? 'none was found' : `there is no ${tried.map(textOf).join('')}`;
  throw configError(`${app}: it needs Python ${LEAST_TEXT} or newer, and ${where}. ${cureOf(tried, wish)}`);
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
}

/** The place, with the path that was found there. */
function textOf({ program, text }: InterpreterPlace): string {
  return program === null || text.startsWith(program) ? text : `${program} (${text})`;
}

function cureOf(tried: readonly InterpreterPlace[], { given }: InterpreterWish): string {
  if (given !== null) return 'Name another, such as --python /usr/bin/python3, or leave it out.';
  return `Tried: ${tried.map(textOf).join(', ')}. Install one, or name it: --python /path/to/python3.`;
}
