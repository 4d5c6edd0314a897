/** Exit codes of the command, for scripts and orchestrators. A test compares them with the list in docs/options.md. */

export const EXIT_CODES = {
  drained: { code: 0, meaning: 'Stopped by a signal; every accepted call was answered.' },
  internal: { code: 1, meaning: 'The server itself failed; please report it.' },
  config: {
    code: 2,
    meaning: 'An option, the config file or the path of the app is wrong; nothing was started.',
  },
  app: {
    code: 3,
    meaning: 'No worker can start: the app cannot be loaded, its init fails, or workers keep dying.',
  },
  listen: { code: 4, meaning: 'The port or socket cannot be opened.' },
  cut: { code: 5, meaning: 'Stopped by a signal; the drain timeout passed and some calls were cut off.' },
  interrupted: { code: 130, meaning: 'A second Ctrl-C: stopped at once.' },
  terminated: { code: 143, meaning: 'A second SIGTERM: stopped at once.' },
} as const;

export type ExitReason = keyof typeof EXIT_CODES;
