/** YAML, for those who write it: a file of its own, so that it is loaded for such a file only. */

export { parse as parseYaml } from 'yaml';
