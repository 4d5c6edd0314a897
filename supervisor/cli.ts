#!/usr/bin/env node
/** The command line: `banana-serve [app]`, `banana-serve new <folder>`, `banana-serve archive …`. Parses argv; no logic. */
import { existsSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { ServeError } from '../protocol/errors.js';
import { MAIN_OPTIONS, SHORT_FLAGS, helpTail } from './command/help.js';
import { collectSeldom } from './memory/gc.js';
import { slabs } from './memory/slabs.js';
import { OPTIONS, OPTION_GROUPS, OPTION_NAMES, type OptionName } from './options/table.js';
import {
  MMS_FLAGS,
  refuseSecondFile,
  withFlagForEachModel,
  withoutMmsFlags,
} from './options/mms/command-flags.js';
import type { ProjectName } from './new/new-project.js';
import type { ServerHandle } from './server/server-handle.js';
import {
  EXIT_CODES,
  explainFailure,
  printError,
  runServerProcess,
  type ExitReason,
} from './command/server-process.js';
import { VERSION } from './version.js';

const ARCHIVE = 'archive';
const OPTIMIZE = 'optimize';
const DEMO = 'demo';

/** SageMaker's argument for a container. */
const SERVE = 'serve';
const NOT_THE_FILE = "serve is SageMaker's argument: to serve ./serve, write ./serve";

/** Begins the flag of an option that is on by default. */
const NEGATION = '--no-';

slabs.onUse = collectSeldom;
process.exitCode = await run(process.argv);
// Streams are flushed by now; a handle that an app's grandchild keeps open must not hold the server.
process.exit();

async function run(argv: readonly string[]): Promise<number> {
  const [, , name, ...args] = argv;
  if (name === ARCHIVE) {
    const { runArchiver } = await import('./archive/archiver.js');
    return runArchiver(`banana-serve ${ARCHIVE}`, args);
  }
  if (name === OPTIMIZE) {
    const { runOptimize } = await import('./optimize/optimize.js');
    return runOptimize(`banana-serve ${OPTIMIZE}`, args);
  }
  if (name === DEMO) {
    const { runDemo } = await import('./demo/demo.js');
    return runDemo(`banana-serve ${DEMO}`, args);
  }
  return EXIT_CODES[await main(argv)].code;
}

async function main(argv: readonly string[]): Promise<ExitReason> {
  let create: (() => Promise<ExitReason>) | null = null;
  const command = describeCommand(
    (folder, kind) => (create = () => createProject(folder, kind)),
    argv.some((arg) => arg === '-h' || arg === '--help'),
  );
  try {
    refuseSecondFile(argv);
    command.parse(withFlagForEachModel(argv, process.cwd()));
  } catch (thrown) {
    if (thrown instanceof ServeError) return explainFailure(thrown);
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 'drained' : 'config';
    throw thrown;
  }
  if (command.opts()['helpAll'] === true) {
    command.outputHelp();
    return 'drained';
  }
  if (create !== null) return (create as () => Promise<ExitReason>)();
  const { apiKey, managementKey, pythonPath } = command.opts();
  if (pythonPath === true) return printPythonPath();
  if ((apiKey ?? managementKey) !== undefined) process.title = 'banana-serve'; // hides the keys from ps
  const start = async (stop: AbortSignal): Promise<ServerHandle> => {
    const { serve } = await import('./serve.js');
    const isSageMaker = isForSageMaker(command);
    const [app] = isSageMaker ? command.args.slice(0, -1) : command.args;
    const { model: modelFlags, ...given } = command.opts<{ model?: string[] }>();
    const { values, warnings } = withoutMmsFlags(given, process.cwd());
    const flags = { values, where: (name: string) => flagOf(name) };
    return serve(app === undefined ? {} : { app }, {
      flags,
      warnings: isSageMaker && existsSync(SERVE) ? [...warnings, NOT_THE_FILE] : warnings,
      stop,
      isSageMaker,
      ...(modelFlags && { modelFlags }),
    });
  };
  return runServerProcess(start, true);
}

function isForSageMaker({ args }: Command): boolean {
  return args.at(-1) === SERVE;
}

/** @throws CommanderError */
function refuseSecondApp(command: Command): void {
  const count = command.args.length - Number(isForSageMaker(command));
  if (count > 1) command.error(`error: too many arguments. Expected 1 argument but got ${count}.`);
}

async function createProject(folder: string, kind: ProjectName): Promise<ExitReason> {
  const { newProject } = await import('./new/new-project.js');
  try {
    process.stdout.write(newProject(folder, process.cwd(), kind));
    return 'drained';
  } catch (thrown) {
    return explainFailure(thrown);
  }
}

async function printPythonPath(): Promise<ExitReason> {
  const { PYTHON_PATH } = await import('./runtimes/python/python.js');
  process.stdout.write(`${PYTHON_PATH}\n`);
  return 'drained';
}

/**
 * Calls `onNew` during parsing if the command is `new`. To serve an app in a folder `new`, write `./new`. `isHelpShort`
 * hides most options, for `--help` only: a mistyped option is not compared with hidden ones.
 */
function describeCommand(onNew: (folder: string, kind: ProjectName) => void, isHelpShort: boolean): Command {
  const command = new Command('banana-serve')
    .description('Serves a model over HTTP from worker processes.')
    .argument(
      '[app]',
      'file with init() and inference(modelInputs); default: app.ts, app.js, app.py or the like; serve: as SageMaker says',
    )
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print the main options.')
    .option('--help-all', 'Print all options, and the exit codes.')
    .option(
      '--python-path',
      'Print the folder of the Python packages that apps import, for PYTHONPATH in tests and editors.',
    )
    .allowExcessArguments(true) // `serve`
    .enablePositionalOptions() // `new` has a --python of its own
    .exitOverride()
    .configureOutput({ outputError: (text) => printError(refusalText(text)) })
    .addHelpText('after', helpTail(isHelpShort))
    .helpCommand(false)
    .action(() => refuseSecondApp(command));
  command
    .command('new')
    .description('Writes a small project into a new folder: app, test, types, Dockerfile.')
    .argument('<folder>', 'the folder; it may exist if it has none of those files')
    .option('--python', 'in Python')
    .addOption(new Option('--onnx', 'of a model in a .onnx file, without code').conflicts('python'))
    .allowExcessArguments(false)
    .action((folder: string, { python = false, onnx = false }: { python?: boolean; onnx?: boolean }) => {
      if (onnx) onNew(folder, 'onnx');
      else onNew(folder, python ? 'python' : 'typescript');
    });
  command
    .command(ARCHIVE)
    .description('Writes a .mar, a .tar.gz or a folder for a model store; see its --help.');
  command
    .command(OPTIMIZE)
    .description('Lets the workers of a large .onnx model on the CPU share its weights; see its --help.');
  command.command(DEMO).description('Shows what supervise() does for a program, in the terminal.');
  for (const flag of MMS_FLAGS) command.addOption(new Option(flag).hideHelp()); // start scripts of Multi Model Server have them
  for (const [group, names] of OPTION_GROUPS) {
    if (group === 'Models') command.addOption(modelOption().helpGroup(`${group}:`).hideHelp(isHelpShort));
    for (const name of names) {
      const isHidden = isHelpShort && !MAIN_OPTIONS.includes(name);
      if (OPTIONS[name].flag.startsWith(NEGATION)) command.addOption(positiveOf(OPTIONS[name].flag));
      command.addOption(describeOption(name).helpGroup(`${group}:`).hideHelp(isHidden));
    }
  }
  return command;
}

/** Without the positive flag beside it, commander gives a negated one the value true when it is not given. */
function positiveOf(flag: string): Option {
  return new Option(flag.replace(NEGATION, '--')).hideHelp();
}

/** `--model`: not in the table of options, because it may be given several times and each adds a model. */
function modelOption(): Option {
  const help =
    'Serves another model at /models/<name>/; may be repeated. Its own options go into banana.json (docs/models.md).';
  return new Option('--model <name=path>', help).argParser(collected);
}

function collected(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function describeOption(name: OptionName): Option {
  const { flag, value, help, defaultText, repeats } = OPTIONS[name];
  const short = SHORT_FLAGS[name];
  const flags = short === undefined ? flag : `${short}, ${flag}`;
  const option = new Option(value === null ? flags : `${flags} ${value}`, `${help} [${defaultText}]`);
  return repeats === true ? option.argParser(collected) : option;
}

/** Removes the value after `=` from commander's message: `--api-kye=secret` would show a key. */
function refusalText(text: string): string {
  const message = text.replace(/^error: /, '').trimEnd();
  const [unknown, flag] = /^unknown option '([^=']+)=.*'$/m.exec(message) ?? [];
  if (unknown === undefined) return message;
  if (OPTION_NAMES.some((name) => OPTIONS[name].flag === flag))
    return `${flag} is a switch and takes no value: write ${flag}, or leave it out.`;
  return message.replace(unknown, `unknown option '${flag}'`);
}

function flagOf(name: string): string {
  return name in OPTIONS ? OPTIONS[name as keyof typeof OPTIONS].flag : name;
}
