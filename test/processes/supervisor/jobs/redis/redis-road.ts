/** The road between one front and Redis, for tests: it can hold up what is on it, and be cut. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

type Way = 'there' | 'back';

/** Something to do at the first command that has all of these words in it. */
interface Ambush {
  readonly words: readonly string[];
  readonly when: 'before' | 'after';
  readonly act: () => void;
}

export class RedisRoad {
  readonly #to: number;
  readonly #server = createServer((socket) => this.#join(socket));
  readonly #sockets = new Set<Socket>();
  readonly #held = new Set<Way>();
  readonly #waiting: { go(): void }[] = [];
  #isCut = false;
  #ambush: Ambush | null = null;
  #delayMs = 0;

  private constructor(to: number) {
    this.#to = to;
  }

  static async open(t: { after(undo: () => void): void }, to: number): Promise<RedisRoad> {
    const road = new RedisRoad(to);
    await once(road.#server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      road.cut();
      road.#server.close();
    });
    return road;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** `there`: commands do not arrive; `back`: they do, but their answers do not. */
  hold(...ways: Way[]): void {
    for (const way of ways) this.#held.add(way);
  }

  /** All that goes either way from now on takes so much longer. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** All that was held arrives, and nothing is held any more. */
  free(): void {
    this.#held.clear();
    this.#pass();
  }

  /**
   * Resolves at the first command from now on that has all of these words, when `act` was called: before the command goes on,
   * or after it has, but before its answer can come.
   */
  ambush(words: readonly string[], when: Ambush['when'], act: () => void): Promise<void> {
    return new Promise((resolve) => {
      const acts = (): void => {
        act();
        resolve();
      };
      this.#ambush = { words, when, act: acts };
    });
  }

  /** Lets answers pass one after the other, until one waits whose command has had an effect; that one is lost, by a cut. */
  async cutAfter(hasEffect: () => Promise<boolean>): Promise<void> {
    this.hold('back');
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (this.#waiting.length === 0) continue;
      if (await hasEffect()) break;
      this.#pass();
    }
    this.cut();
  }

  /** Loses what is held, and all connections; new ones end at once. */
  cut(): void {
    this.#isCut = true;
    this.#waiting.length = 0;
    this.#held.clear();
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  #ambushOf(bytes: Buffer): Ambush | null {
    const ambush = this.#ambush;
    if (ambush === null || !ambush.words.every((word) => bytes.includes(word))) return null;
    this.#ambush = null;
    return ambush;
  }

  #pass(): void {
    for (const { go } of this.#waiting.splice(0)) go();
  }

  #join(front: Socket): void {
    if (this.#isCut) {
      front.destroy();
      return;
    }
    const redis = connect(this.#to, '127.0.0.1');
    for (const [from, to, way] of [
      [front, redis, 'there'],
      [redis, front, 'back'],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => {}); // the other end hears of its close
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on('data', (bytes) => {
        const ambush = way === 'there' ? this.#ambushOf(bytes) : null;
        if (ambush?.when === 'before') ambush.act();
        const write = (): void => void to.write(bytes);
        const go = this.#delayMs === 0 ? write : () => void setTimeout(write, this.#delayMs);
        if (this.#held.has(way)) this.#waiting.push({ go });
        else go();
        if (ambush?.when === 'after') ambush.act();
      });
    }
  }
}
