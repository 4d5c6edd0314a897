/** Runs a command that has a command line of its own: `banana-serve archive`, `banana-serve optimize`. */
import { CommanderError, type Command } from 'commander';

/** The command cannot do its work; the message has the reason and a remedy. */
export class CommandProblem extends Error {}

/**
 * Parses `args`, which are without the command's name, and calls `act` with a function that prints to stderr. Resolves with
 * the exit code: 1 after a failure, 2 for a wrong command line or setting.
 */
export async function runCommand(
  command: Command,
  args: readonly string[],
  act: (say: (text: string) => void) => Promise<void>,
): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${command.name()}: ${text}\n`);
  command
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ outputError: (text) => say(text.replace(/^error: /, '').trimEnd()) });
  try {
    command.parse(args, { from: 'user' });
    await act(say);
    return 0;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    const { message, code } = thrown as NodeJS.ErrnoException;
    if (!(thrown instanceof CommandProblem) && code === undefined) throw thrown; // a mistake of ours
    say(message);
    return code === 'SERVE_CONFIG' ? 2 : 1;
  }
}
