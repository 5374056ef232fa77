/** A value of the configuration that stops the start; its message says what to do. */
export class ConfigError extends Error {}
