package dev.fieldmesh.core

import dev.fieldmesh.core.map.PmTiles
import java.io.ByteArrayOutputStream
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.util.zip.GZIPOutputStream

/** Maps for tests. */
object Maps {
    /** Written by others' writers: controller/streets/testdata/town.py. */
    fun written(name: String) =
        File(System.getProperty("fieldmesh.golden"), "../../../controller/streets/testdata/$name.pmtiles")

    fun opened(file: File) = PmTiles(FileChannel.open(file.toPath()))

    fun opened(bytes: ByteArray): PmTiles {
        val file = Files.createTempFile("map", ".pmtiles")
        file.toFile().deleteOnExit()
        Files.write(file, bytes)
        return opened(file.toFile())
    }

    fun packed(bytes: ByteArray): ByteArray =
        ByteArrayOutputStream().also { out -> GZIPOutputStream(out).use { it.write(bytes) } }.toByteArray()

    /** Numbers as a directory has them. */
    fun numbers(vararg all: Long): ByteArray {
        val out = ByteArrayOutputStream()
        for (n in all) {
            var rest = n
            while (rest ushr 7 != 0L) {
                out.write((rest or 0x80).toInt())
                rest = rest ushr 7
            }
            out.write(rest.toInt())
        }
        return out.toByteArray()
    }

    /** A directory of one entry. */
    fun entry(run: Long, length: Long, offset: Long = 0, first: Long = 0) = numbers(1, first, run, length, offset + 1)

    /** An archive of zooms 0 to 15, [type] as its header has it. Vector tiles are packed, with what leads to them. */
    fun made(
        root: ByteArray,
        leaves: ByteArray = ByteArray(0),
        tiles: ByteArray = ByteArray(0),
        metadata: String = "{}",
        type: Int = 1,
    ): ByteArray {
        val isPacked = type == 1
        fun pack(part: ByteArray) = if (isPacked) packed(part) else part
        val parts = listOf(pack(root), pack(metadata.encodeToByteArray()), leaves, tiles)
        val header = ByteBuffer.allocate(127).order(ByteOrder.LITTLE_ENDIAN).put("PMTiles\u0003".encodeToByteArray())
        var at = 127L
        for (part in parts) {
            header.putLong(at).putLong(part.size.toLong())
            at += part.size
        }
        val how: Byte = if (isPacked) 2 else 1
        header.put(97, how).put(98, how).put(99, type.toByte()).put(101, 15)
        return parts.fold(header.array()) { all, part -> all + part }
    }
}
