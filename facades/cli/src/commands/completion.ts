/** Completion for shells. The scripts ask the program itself, so they know each command of its version. */
import { Command } from 'commander';
import { UsageError } from '../failure.ts';
import { write } from '../terminal.ts';

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_freehold() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(freehold __complete "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null | cut -f1)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _freehold freehold`,
  zsh: `#compdef freehold
_freehold() {
  local -a found
  found=(\${(f)"$(freehold __complete "\${(@)words[2,CURRENT-1]}" 2>/dev/null | sed 's/:/\\\\:/g; s/\\t/:/')"})
  _describe freehold found
}
compdef _freehold freehold`,
  fish: `complete -c freehold -f -a '(freehold __complete (commandline -opc)[2..-1] 2>/dev/null)'`,
};

export const completion = () =>
  new Command('completion')
    .description('Print a completion script')
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText(
      'after',
      '\nExamples:\n  source <(freehold completion bash)\n  freehold completion fish > ~/.config/fish/completions/freehold.fish',
    )
    .action((shell: string) => {
      const script = SCRIPTS[shell];
      if (!script)
        throw new UsageError(`There is no completion for ${shell}. There is: ${Object.keys(SCRIPTS).join(', ')}`);
      write(script);
    });

/** The hidden command that the scripts call, with the words before the one to complete. */
export const complete = () =>
  new Command('__complete')
    .argument('[words...]')
    .allowUnknownOption()
    .action((words: string[], _options, own: Command) => {
      let command = own.parent!;
      for (const word of words)
        command = command.commands.find((one) => one.name() === word || one.alias() === word) ?? command;
      for (const one of command.commands)
        if (!one.name().startsWith('__')) write(`${one.name()}\t${one.description()}`);
      for (const option of [...command.options, ...own.parent!.options]) write(`${option.long}\t${option.description}`);
    });
