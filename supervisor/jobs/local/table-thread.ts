/** The thread of a local store of jobs. What arrives while it commits shares the next commit. */
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import { CannotOpen, FullDisk, PACKAGE, databaseFile, type DatabaseClass } from './job-database.js';
import { openTable, type TableOptions } from './open-table.js';
import type { FromThread, ToThread } from './open-thread.js';
import { TableLoop } from './table-loop.js';

/** Most messages of one commit: their answers wait for all of them. */
const MAX_MESSAGES = 100;

const port = parentPort as MessagePort;
const tell = (message: FromThread): void => port.postMessage(message);

try {
  await start(workerData as TableOptions);
} catch (error) {
  if (!(error instanceof CannotOpen)) throw error;
  tell({ is: 'cannot open', why: error.message, isFull: error instanceof FullDisk });
}

async function start(options: TableOptions): Promise<void> {
  const { database, table, opened } = openTable(await loadDatabase(), options);
  tell({ is: 'open', opened });
  const loop = new TableLoop(table, databaseFile(options.folder), (news) => tell({ is: 'news', news }));
  port.on('message', (first: ToThread) => {
    const messages = [first, ...arrived()];
    loop.run(messages.flatMap((calls) => calls ?? []));
    if (!messages.includes(null)) return;
    loop.timer.stop();
    database.close();
    port.close();
  });
}

/** Messages that have arrived already. */
function arrived(): ToThread[] {
  const messages: ToThread[] = [];
  while (messages.length < MAX_MESSAGES) {
    const next = receiveMessageOnPort(port) as { message: ToThread } | undefined;
    if (next === undefined) break;
    messages.push(next.message);
  }
  return messages;
}

async function loadDatabase(): Promise<DatabaseClass> {
  try {
    return (await import('@photostructure/sqlite')).DatabaseSync;
  } catch (cause) {
    const { code = 'unknown' } = cause as { code?: string };
    throw new CannotOpen(
      `--jobs local needs the package ${PACKAGE}, which cannot be loaded (${code}). Run: npm install ${PACKAGE}`,
      { cause },
    );
  }
}
