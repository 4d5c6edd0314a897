#!/usr/bin/env node
/** `banana-serve [app]`: argv to options, signals to `close` and `kill`, ends to exit codes. No logic. */
import { Command, CommanderError, Option } from 'commander';
import { EXIT_CODES, type ExitReason } from './exit-codes.js';
import { collectSeldom } from './memory/gc.js';
import { slabs } from './memory/slabs.js';
import { OPTIONS, OPTION_NAMES, envName } from './options/table.js';
import { runServer, say } from './run-server.js';
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
  if (command.opts()['apiKey'] !== undefined) process.title = 'banana-serve'; // takes the flags out of ps
  return runServer(async () => {
    const { serve } = await import('./serve.js');
    const [app] = command.args;
    const flags = { values: command.opts(), where: (name: string) => flagOf(name) };
    return serve(app === undefined ? {} : { app }, { flags });
  });
}

function describeCommand(): Command {
  const command = new Command('banana-serve')
    .description('Serves a model over HTTP from worker processes.')
    .argument('[app]', 'file that exports init() and inference(modelInputs); app.ts and its like if left out')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ outputError: (text) => say(withoutValue(text.replace(/^error: /, '')).trimEnd()) })
    .addHelpText('after', helpTail());
  for (const name of OPTION_NAMES) {
    const { flag, value, help, defaultText } = OPTIONS[name];
    command.addOption(new Option(value === null ? flag : `${flag} ${value}`, `${help} [${defaultText}]`));
  }
  return command;
}

/** Of an option that is not known: `--api-kye=secret` might be shown. */
function withoutValue(text: string): string {
  return text.replace(/^(unknown option '[^=']+)=.*'$/m, "$1'");
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
