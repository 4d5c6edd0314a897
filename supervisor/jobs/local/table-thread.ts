/** The thread of a local store of jobs. What arrives while it commits shares the next commit. */
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import { CannotOpen, PACKAGE, type DatabaseClass } from './job-database.js';
import { TableLoop, type TableCall, type TableOptions } from './table-loop.js';

/** Calls, or the order to close the table. */
type Message = readonly TableCall[] | null;

/** Most messages of one commit: their answers wait for all of them. */
const MAX_MESSAGES = 100;

const port = parentPort as MessagePort;
const loop = new TableLoop(await loadDatabase(), workerData as TableOptions, (news) =>
  port.postMessage(news),
);
port.on('message', (first: Message) => {
  const messages = [first, ...arrived()];
  loop.run(messages.flatMap((calls) => calls ?? []));
  if (!messages.includes(null)) return;
  loop.close();
  port.close();
});
port.postMessage(loop.opened);

/** Messages that have arrived already. */
function arrived(): Message[] {
  const messages: Message[] = [];
  while (messages.length < MAX_MESSAGES) {
    const next = receiveMessageOnPort(port) as { message: Message } | undefined;
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
