/** Opens a table of jobs in a thread of its own, since SQLite's calls block until the disk has their bytes. */
import { Worker } from 'node:worker_threads';
import { describeThrown } from '../../../protocol/errors.js';
import { within } from '../../machine/limit-timer.js';
import type { KeepLimits } from '../job-store.js';
import { CannotOpen, FullDisk } from './job-database.js';
import type { TableOptions } from './open-table.js';
import type { NumberedCall, TableNews } from './table-calls.js';
import type { Effects } from './table-data.js';
import type { OpenPort, PortListener, TablePort } from './table-link.js';

/** Calls, or the order to close the table. */
export type ToThread = readonly NumberedCall[] | null;

export type FromThread =
  | { readonly is: 'open'; readonly opened: Effects }
  | { readonly is: 'cannot open'; readonly why: string; readonly isFull: boolean }
  | { readonly is: 'news'; readonly news: TableNews };

/** Longest wait for a thread whose disk hangs at the end. */
const CLOSE_LIMIT_MS = 5000;

/** `onStarted`: gets each thread, for tests. */
export function threadIn(
  folder: string,
  limits: KeepLimits,
  onStarted: (thread: Worker) => void = () => {},
): OpenPort {
  return (isFirst, listener) => {
    const workerData: TableOptions = { folder, limits, isFirst };
    const thread = new Worker(new URL('./table-thread.js', import.meta.url), { workerData });
    onStarted(thread);
    return untilOpen(thread, listener);
  };
}

function untilOpen(thread: Worker, listener: PortListener): Promise<TablePort> {
  return new Promise((resolve, reject) => {
    let why = 'it ended by itself';
    let isOpen = false;
    const ended = new Promise<void>((onEnd) => {
      thread.once('exit', () => {
        onEnd();
        if (isOpen) listener.onDied(why);
        else reject(new CannotOpen(`the thread of the store of jobs has ended: ${why}`));
      });
    });
    thread.on('error', (error) => (why = describeThrown(error).stack));
    thread.on('message', (message: FromThread) => {
      if (message.is === 'news') listener.onNews(message.news);
      else if (message.is === 'cannot open')
        reject(message.isFull ? new FullDisk(message.why) : new CannotOpen(message.why));
      else {
        isOpen = true;
        resolve(portOf(thread, message.opened, ended));
      }
    });
  });
}

function portOf(thread: Worker, opened: Effects, ended: Promise<void>): TablePort {
  const post = (message: ToThread): void => thread.postMessage(message);
  return {
    opened,
    post,
    close: async () => {
      post(null);
      await within(CLOSE_LIMIT_MS, ended);
      void thread.terminate();
    },
  };
}
