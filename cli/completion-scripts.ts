/**
 * Completion scripts for shells: they call the program with the words of the line and print its proposals. What was
 * typed is never evaluated, and no other package of the shell is needed.
 */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The hidden command that prints proposals. Its arguments are the words after the program, the last one incomplete. */
export const COMPLETE_COMMAND = '__complete';

/** Printed instead of proposals: the shell completes files or folders itself. */
export const FILES_MARK = ':files';
export const FOLDERS_MARK = ':folders';

export function completionScript(shell: Shell, program: string): string {
  return { bash, zsh, fish }[shell](program, `_${program.replaceAll('-', '_')}`);
}

/** Each proposal is a line: the word, a tab, its meaning. */
const bash = (program: string, name: string) => `\
${name}() {
  local line IFS=$'\\n'
  COMPREPLY=()
  while read -r line; do
    case "$line" in
      ${FILES_MARK}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$2")) ;;
      ${FOLDERS_MARK}) compopt -o filenames; COMPREPLY=($(compgen -d -- "$2")) ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("$1" ${COMPLETE_COMMAND} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F ${name} ${program}`;

const zsh = (program: string, name: string) => `\
#compdef ${program}
${name}() {
  local line
  local -a found
  for line in "\${(@f)$("\${words[1]}" ${COMPLETE_COMMAND} "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$line" in
      '') ;;
      ${FILES_MARK}) _files ;;
      ${FOLDERS_MARK}) _files -/ ;;
      *) found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done
  (( \${#found} )) && _describe '${program}' found
}
if [[ $zsh_eval_context == *func ]]; then ${name} "$@"; else compdef ${name} ${program}; fi`;

const fish = (program: string, name: string) => `\
function _${name}
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] ${COMPLETE_COMMAND} $words[2..-1] 2>/dev/null)
    switch $line
      case ${FILES_MARK}
        __fish_complete_path (commandline -ct)
      case ${FOLDERS_MARK}
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c ${program} -f -a '(_${name})'`;
