/** An invalid configuration value, which prevents the start; the message says how to fix it. */
export class ConfigError extends Error {}
