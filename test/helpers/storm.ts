/** Calls that go on while workers are killed with -9, at moments of the load's own. */
import { eventually, type Server, type Status } from './server.js';

/** Calls that are on their way at any time. */
export const LANES = 16;

/** Calls answered between two strikes. */
export const CALM = 40;

export interface Storm {
  readonly strikes: number;
  /** Workers that must live before a strike. */
  readonly standing: number;
  /** Whom to kill. */
  readonly victims: (pids: readonly number[]) => readonly number[];
}

export const ONE_AT_A_TIME: Omit<Storm, 'strikes'> = { standing: 1, victims: (pids) => [pick(pids)] };

export interface Load<Sent> {
  readonly answered: number;
  /** Resolves with every call once all have their answer. */
  finish(): Promise<Sent[]>;
}

/** Keeps `LANES` calls going until `finish`. `send`: the call of this number, with what came back. */
export function startLoad<Sent extends { readonly answer: { readonly status: number } }>(
  send: (n: number) => Promise<Sent>,
): Load<Sent> {
  const sent: Sent[] = [];
  let over = false;
  let count = 0;
  let answered = 0;
  const lane = async (): Promise<void> => {
    while (!over) {
      count += 1;
      const one = await send(count);
      if (one.answer.status === 200) answered += 1;
      sent.push(one);
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  return {
    get answered() {
      return answered;
    },
    finish: async () => {
      over = true;
      await lanes;
      return sent;
    },
  };
}

/** Returns how many workers were killed. */
export async function strike(
  server: Server,
  { strikes, standing, victims }: Storm,
  load: Pick<Load<unknown>, 'answered'>,
): Promise<number> {
  const killed = new Set<number>();
  const live = ({ model }: Status): number[] =>
    model.workers.flatMap(({ state, pid }) =>
      (state === 'idle' || state === 'busy') && pid !== null && !killed.has(pid) ? [pid] : [],
    );
  for (let i = 0; i < strikes; i += 1) {
    // Any moment of a call: a random one of the answers after the calm, while the other lanes are wherever they are.
    const goal = load.answered + CALM + Math.floor(Math.random() * LANES);
    await eventually(
      () => load.answered >= goal,
      90_000,
      () => `${load.answered} calls answered`,
    );
    const status = await server.until((now) => live(now).length >= standing, 90_000);
    for (const pid of victims(live(status))) {
      process.kill(pid, 'SIGKILL');
      killed.add(pid);
    }
  }
  return killed.size;
}

function pick(pids: readonly number[]): number {
  return pids[Math.floor(Math.random() * pids.length)] as number;
}

/** Counts the begins of each call, by the number or id in the app's notes. */
export function begins(notes: readonly string[]): (id: string) => number {
  const begun = new Map<string, number>();
  for (const line of notes) begun.set(line, (begun.get(line) ?? 0) + 1);
  return (id) => begun.get(`begun ${id}`) ?? 0;
}
