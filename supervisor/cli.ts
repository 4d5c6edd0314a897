#!/usr/bin/env node
/**
 * `banana-serve [app]`, `banana-serve new <folder>` and `banana-serve archive …`: argv to options, signals to `close` and
 * `kill`, ends to exit codes. No logic.
 */
import { Command, CommanderError, Option } from 'commander';
import { EXIT_CODES, type ExitReason } from './command/exit-codes.js';
import { collectSeldom } from './memory/gc.js';
import { slabs } from './memory/slabs.js';
import {
  OPTIONS,
  OPTION_GROUPS,
  OPTION_NAMES,
  envName,
  optionsOf,
  type OptionName,
} from './options/table.js';
import type { OptionSpec } from './options/option-spec.js';
import { MMS_FLAGS, withFlagForEachModel, withoutMmsFlags } from './options/mms/command-flags.js';
import type { ServerHandle } from './server/server-handle.js';
import { explainFailure, runServerProcess, say } from './command/server-process.js';
import { VERSION } from './version.js';

const ARCHIVE = 'archive';

slabs.onUse = collectSeldom;
process.exitCode = process.argv[2] === ARCHIVE ? await archive() : EXIT_CODES[await main(process.argv)].code;
// Streams are flushed by now; a handle that an app's grandchild keeps open must not hold the server.
process.exit();

async function main(argv: readonly string[]): Promise<ExitReason> {
  let wish: ProjectWish | null = null;
  const command = describeCommand((folder, { python = false }) => (wish = { folder, isPython: python }));
  try {
    command.parse(withFlagForEachModel(argv, process.cwd()));
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 'drained' : 'config';
    throw thrown;
  }
  if (wish !== null) return createProject(wish);
  const { apiKey, managementKey, pythonPath } = command.opts();
  if (pythonPath === true) return printPythonPath();
  if ((apiKey ?? managementKey) !== undefined) process.title = 'banana-serve'; // takes the flags out of ps
  const start = async (stop: AbortSignal): Promise<ServerHandle> => {
    const { serve } = await import('./serve.js');
    const [app] = command.args;
    const { model: modelFlags, ...given } = command.opts<{ model?: string[] }>();
    const { values, warnings } = withoutMmsFlags(given, process.cwd());
    const flags = { values, where: (name: string) => flagOf(name) };
    return serve(app === undefined ? {} : { app }, {
      flags,
      warnings,
      stop,
      ...(modelFlags && { modelFlags }),
    });
  };
  return runServerProcess(start, { endsWithNpm: true });
}

/** A command of its own, with options of its own. */
async function archive(): Promise<number> {
  const { runArchiver } = await import('./archive/archiver-command.js');
  return runArchiver(`banana-serve ${ARCHIVE}`, process.argv.slice(3));
}

interface ProjectWish {
  readonly folder: string;
  readonly isPython: boolean;
}

async function createProject({ folder, isPython }: ProjectWish): Promise<ExitReason> {
  const { newProject, PYTHON_PROJECT, TYPESCRIPT_PROJECT } = await import('./new/new-project.js');
  try {
    const kind = isPython ? PYTHON_PROJECT : TYPESCRIPT_PROJECT;
    process.stdout.write(newProject(folder, process.cwd(), kind));
    return 'drained';
  } catch (thrown) {
    return explainFailure(thrown);
  }
}

async function printPythonPath(): Promise<ExitReason> {
  const { PYTHON_PATH } = await import('./runtimes/python/python-path.js');
  process.stdout.write(`${PYTHON_PATH}\n`);
  return 'drained';
}

/** `onNew` is called while the arguments are parsed, if they ask for a new project. An app of that name is `./new`. */
function describeCommand(onNew: (folder: string, given: { python?: boolean }) => void): Command {
  const command = new Command('banana-serve')
    .description('Serves a model over HTTP from worker processes.')
    .argument(
      '[app]',
      'file with init() and inference(modelInputs); app.ts and its like, or app.py, if left out',
    )
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .option(
      '--python-path',
      'Print the folder of what apps in Python import, for PYTHONPATH in tests and editors.',
    )
    .allowExcessArguments(false)
    .enablePositionalOptions() // `new` has a --python of its own
    .exitOverride()
    .configureOutput({ outputError: (text) => say(refusalText(text)) })
    .addHelpText('after', helpTail())
    .helpCommand(false)
    .action(() => {});
  command
    .command('new')
    .description('Writes a small project into a new folder: app, test, types, Dockerfile.')
    .argument('<folder>', 'where; it may exist, if none of those files is in it')
    .option('--python', 'in Python')
    .allowExcessArguments(false)
    .action(onNew);
  command
    .command(ARCHIVE)
    .description('Writes a .mar, a .tar.gz or a folder for a model store; --help says how.');
  for (const flag of MMS_FLAGS) command.addOption(new Option(flag).hideHelp()); // for start scripts that have them
  for (const group of OPTION_GROUPS) {
    if (group === 'Models') command.addOption(modelOption().helpGroup(`${group}:`));
    for (const name of optionsOf(group)) command.addOption(describeOption(name).helpGroup(`${group}:`));
  }
  return command;
}

/** Not an option of the table: it may be given several times, and each adds a model. */
function modelOption(): Option {
  const help =
    'One model more, called at /models/<name>/; may be repeated. Its own options stand in banana.json (docs/models.md).';
  return new Option('--model <name=path>', help).argParser(collected);
}

function collected(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function describeOption(name: OptionName): Option {
  const { flag, value, help, defaultText, repeats }: OptionSpec<unknown> = OPTIONS[name];
  const option = new Option(value === null ? flag : `${flag} ${value}`, `${help} [${defaultText}]`);
  return repeats === true ? option.argParser(collected) : option;
}

/** The value after `=` is left out: `--api-kye=secret` might be shown. */
function refusalText(text: string): string {
  const said = text.replace(/^error: /, '').trimEnd();
  const [unknown, flag] = /^unknown option '([^=']+)=.*'$/m.exec(said) ?? [];
  if (unknown === undefined) return said;
  if (OPTION_NAMES.some((name) => OPTIONS[name].flag === flag))
    return `${flag} is a switch and takes no value: write ${flag}, or leave it out.`;
  return said.replace(unknown, `unknown option '${flag}'`);
}

function helpTail(): string {
  const codes = Object.values(EXIT_CODES).map(
    ({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`,
  );
  return `
Examples:
  banana-serve new my-model                            a project to begin with; new --python for one in Python
  banana-serve ./app.ts --watch                        while you write it
  banana-serve ./app.ts --workers 4 --run-timeout 30s  four processes, 30 seconds for a call
  banana-serve --model a=./a.ts --model b=./b.ts       two models on one port

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
