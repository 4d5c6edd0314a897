/** Telemetry of libraries, which a server leaves off unless its operator wants it. */

/** onnxruntime, also in apps, writes a device id below the cache folder and reports to its maker unless this is set. */
export const NO_TELEMETRY: Readonly<Record<string, string>> = { ORT_DISABLE_TELEMETRY: '1' };
