/**
 * Bounds how much of large bodies one turn of the event loop takes. libuv reads up to 32 times 64 KiB from every socket that
 * has so much: eight clients with large bodies would keep all others waiting for 16 MB, some 20 ms of work.
 *
 * A body that has had its share waits, and goes on in a later turn, in rotation with the others.
 */

/** Bytes of one body in one turn; the piece that exceeds it is taken. */
export const SHARE_BYTES = 256 * 1024;

/** Bodies that go on in one turn. One that has not waited yet may take a piece besides. */
const SHARES = 2;

/** A body that waits for its turn. */
export interface WaitingBody {
  /** Its turn has come. Returns whether it reads on. */
  goOn(): boolean;
}

const waiting: WaitingBody[] = [];
let turn = 0;
let left = SHARES * SHARE_BYTES;
let isTurnScheduled = false;

/** Identifies the present turn. */
export function currentTurn(): number {
  return turn;
}

/** Counts bytes that this turn took. Returns whether it may take more. */
export function takeBytes(bytes: number): boolean {
  left -= bytes;
  scheduleTurn();
  return left > 0;
}

export function awaitTurn(body: WaitingBody): void {
  waiting.push(body);
  scheduleTurn();
}

function scheduleTurn(): void {
  if (isTurnScheduled) return;
  isTurnScheduled = true;
  setImmediate(beginTurn);
}

function beginTurn(): void {
  isTurnScheduled = false;
  turn += 1;
  left = SHARES * SHARE_BYTES;
  let shares = SHARES;
  while (shares > 0 && waiting.length > 0) if (waiting.shift()?.goOn() === true) shares -= 1;
  if (waiting.length > 0) scheduleTurn();
}
