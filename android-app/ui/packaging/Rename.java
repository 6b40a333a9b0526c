import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.Remapper;

/** Gives classes and methods of an archive other names: java Rename.java FROM.jar TO.jar REGEX REPLACEMENT */
public final class Rename extends Remapper {
    private final String regex;
    private final String replacement;

    private Rename(String regex, String replacement) {
        this.regex = regex;
        this.replacement = replacement;
    }

    @Override
    public String map(String internalName) {
        return internalName.replaceAll(regex, replacement);
    }

    @Override
    public String mapMethodName(String owner, String name, String descriptor) {
        return map(name);
    }

    @Override
    public String mapInvokeDynamicMethodName(String name, String descriptor) {
        return map(name);
    }

    public static void main(String[] args) throws IOException {
        Rename names = new Rename(args[2], args[3]);
        try (ZipFile from = new ZipFile(args[0]);
                ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(Path.of(args[1])))) {
            for (ZipEntry entry : (Iterable<ZipEntry>) from.stream().map(ZipEntry.class::cast)::iterator) {
                if (!entry.getName().endsWith(".class")) continue;
                ClassReader read = new ClassReader(from.getInputStream(entry));
                ClassWriter written = new ClassWriter(0);
                read.accept(new ClassRemapper(written, names), 0);
                to.putNextEntry(new ZipEntry(names.map(read.getClassName()) + ".class"));
                to.write(written.toByteArray());
            }
        }
    }
}
