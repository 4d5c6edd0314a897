#!/usr/bin/env node
/** `banana-serve [app]`: argv to options, signals to `close` and `kill`, ends to exit codes. No logic. */
import { Command, CommanderError, Option } from 'commander';
import { ServeError } from '../protocol/errors.js';
import { EXIT_CODES, type ExitReason } from './exit-codes.js';
import { collectSeldom } from './memory/gc.js';
import { slabs } from './memory/slabs.js';
import { OPTIONS, OPTION_NAMES, envName } from './options/table.js';
import type { ServerEnd, ServerHandle } from './serve.js';
import { VERSION } from './version.js';

slabs.onUse = collectSeldom;
process.exitCode = EXIT_CODES[await main(process.argv)].code;
// Streams are flushed by now; a handle that an app's grandchild keeps open must not hold the server.
process.exit();

async function main(argv: readonly string[]): Promise<ExitReason> {
  const command = describeCommand();
  try {
    command.parse(argv);
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 'drained' : 'config';
    throw thrown;
  }
  const signals = watchSignals();
  const { serve } = await import('./serve.js');
  try {
    const [app] = command.args;
    const flags = { values: command.opts(), where: (name: string) => flagOf(name) };
    const server = await serve(app === undefined ? {} : { app }, { flags });
    return await signals.obey(server);
  } catch (thrown) {
    return explain(thrown);
  }
}

function describeCommand(): Command {
  const command = new Command('banana-serve')
    .description('Serves a model over HTTP from worker processes.')
    .argument('[app]', 'file that exports init() and inference(modelInputs); app.ts and its like if left out')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({
      outputError: (text) =>
        say(
          withoutSecrets(text)
            .replace(/^error: /, '')
            .trimEnd(),
        ),
    })
    .addHelpText('after', helpTail());
  for (const name of OPTION_NAMES) {
    const { flag, value, help, defaultText } = OPTIONS[name];
    command.addOption(new Option(value === null ? flag : `${flag} ${value}`, `${help} [${defaultText}]`));
  }
  return command;
}

/** A mistyped flag is quoted with its value: `--webhook-secert=whsec_…`. */
function withoutSecrets(text: string): string {
  return text.replace(/whsec_[^\s'",]*/g, 'whsec_…');
}

function helpTail(): string {
  const codes = Object.values(EXIT_CODES).map(
    ({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`,
  );
  return `
Every option is also an environment variable (${envName('runTimeout')}=30s), a key of banana.json or of "banana" in
package.json ("runTimeout": "30s"); those of a model may stand in the app's \`config\` export.
Flags win over the environment, the environment over files, files over the app.

Exit codes:
${codes.join('\n')}
`;
}

function flagOf(name: string): string {
  return name in OPTIONS ? OPTIONS[name as keyof typeof OPTIONS].flag : name;
}

/**
 * First signal: drain. Second: stop at once. Watched from the start of the process, so that one which comes while
 * the server opens is obeyed once it has.
 */
function watchSignals(): { obey(server: ServerHandle): Promise<ExitReason> } {
  let server: ServerHandle | null = null;
  let first: 'SIGINT' | 'SIGTERM' | null = null;
  let stopped: 'interrupted' | 'terminated' | null = null;
  const drain = (): void => {
    if (server === null || first === null) return;
    // A person at a terminal waits; a load balancer needs a moment to notice.
    void server.close({ lagMs: first === 'SIGINT' ? 0 : server.drainLagMs });
  };
  const onSignal = (signal: 'SIGINT' | 'SIGTERM'): void => {
    if (first === null) {
      first = signal;
      drain();
      return;
    }
    stopped ??= signal === 'SIGINT' ? 'interrupted' : 'terminated';
    if (server === null) process.exit(EXIT_CODES[stopped].code);
    server.kill();
  };
  process.on('SIGINT', () => onSignal('SIGINT'));
  process.on('SIGTERM', () => onSignal('SIGTERM'));
  return {
    obey: async (started) => {
      server = started;
      drain();
      const end = await started.ended;
      return stopped ?? reasonOf(end);
    },
  };
}

function reasonOf({ reason }: ServerEnd): ExitReason {
  switch (reason) {
    case 'drained':
    case 'cut':
      return reason;
    case 'failed':
      return 'app';
    case 'killed':
      return 'terminated';
  }
}

function explain(thrown: unknown): ExitReason {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (thrown instanceof ServeError && thrown.code === 'SERVE_CONFIG') {
    say(message);
    return 'config';
  }
  const where = placeOf(thrown as ListenError);
  if (code === 'EADDRINUSE') {
    say(`${where} is in use by another program. Choose another with --port, or --port 0 for a free one.`);
    return 'listen';
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'ENOENT') {
    say(`cannot listen on ${where}: ${message}. Check --host and --port.`);
    return 'listen';
  }
  say(`internal error: ${thrown instanceof Error ? (thrown.stack ?? message) : String(thrown)}`);
  return 'internal';
}

/** What `listen` adds to a system error: a host that has no address has only its name, a socket only its path. */
interface ListenError {
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
}

function placeOf({ hostname, address = '', port = 0 }: ListenError): string {
  if (hostname !== undefined) return `host ${hostname}`;
  return port > 0 ? `port ${port} of ${address}` : address;
}

function say(text: string): void {
  process.stderr.write(`banana-serve: ${text}\n`);
}
