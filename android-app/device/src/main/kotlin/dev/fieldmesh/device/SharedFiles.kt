package dev.fieldmesh.device

import android.content.ClipData
import android.content.ContentProvider
import android.content.ContentValues
import android.content.Context
import android.content.Intent
import android.database.Cursor
import android.database.MatrixCursor
import android.net.Uri
import android.os.ParcelFileDescriptor
import android.provider.OpenableColumns
import java.io.File
import java.io.FileNotFoundException

/**
 * Lets the app that a person chose read the file that was handed to it: no other app, and no other file. The files are
 * copies in the app's cache, which Android may delete.
 */
class SharedFiles : ContentProvider() {
    override fun onCreate() = true

    override fun getType(uri: Uri): String = typeOf(uri.lastPathSegment.orEmpty())

    override fun openFile(uri: Uri, mode: String): ParcelFileDescriptor {
        if (mode != "r") throw FileNotFoundException("$uri is only to be read")
        return ParcelFileDescriptor.open(fileOf(uri), ParcelFileDescriptor.MODE_READ_ONLY)
    }

    /** Its name and size, as those ask who take a file; nothing of one that is gone. */
    override fun query(uri: Uri, wanted: Array<String>?, where: String?, with: Array<String>?, order: String?): Cursor {
        val columns = wanted?.filter(COLUMNS::contains) ?: COLUMNS
        val rows = MatrixCursor(columns.toTypedArray(), 1)
        val file = try {
            fileOf(uri)
        } catch (_: FileNotFoundException) {
            return rows
        }
        rows.addRow(columns.map { if (it == OpenableColumns.SIZE) file.length() else file.name })
        return rows
    }

    private fun fileOf(uri: Uri): File {
        val folder = folder(checkNotNull(context)).canonicalFile
        val file = File(folder, uri.pathSegments.joinToString("/")).canonicalFile
        if (!file.startsWith(folder) || !file.isFile) throw FileNotFoundException("$uri is not shared")
        return file
    }

    override fun insert(uri: Uri, values: ContentValues?) = throw UnsupportedOperationException()

    override fun update(uri: Uri, values: ContentValues?, where: String?, with: Array<String>?) =
        throw UnsupportedOperationException()

    override fun delete(uri: Uri, where: String?, with: Array<String>?) = throw UnsupportedOperationException()

    companion object {
        private val COLUMNS = listOf(OpenableColumns.DISPLAY_NAME, OpenableColumns.SIZE)

        /** Where a file lies that may be shared. */
        fun folder(context: Context) = File(context.cacheDir, "shared")

        /** Has another app show a file of [folder]. */
        fun view(context: Context, file: File): Intent {
            val uri = uriOf(context, file)
            return Intent(Intent.ACTION_VIEW).setDataAndType(uri, typeOf(file.name)).granting(uri)
        }

        /** Hands a file of [folder] to the app that a person chooses. */
        fun send(context: Context, file: File): Intent {
            val uri = uriOf(context, file)
            val send = Intent(Intent.ACTION_SEND).setType(typeOf(file.name)).putExtra(Intent.EXTRA_STREAM, uri)
            return Intent.createChooser(send.putExtra(Intent.EXTRA_SUBJECT, subject(file)).granting(uri), null)
        }

        private fun Intent.granting(uri: Uri): Intent {
            clipData = ClipData.newRawUri(null, uri)
            return addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION)
        }

        private fun subject(file: File) = "${file.parentFile?.name} ${file.name}"

        private fun uriOf(context: Context, file: File): Uri {
            val path = file.relativeTo(folder(context)).path
            return Uri.Builder().scheme("content").authority("${context.packageName}.files").path(path).build()
        }

        private fun typeOf(name: String) = when (name.substringAfterLast('.')) {
            "html" -> "text/html"
            "csv" -> "text/csv"
            "gpx" -> "application/gpx+xml"
            else -> "application/octet-stream"
        }
    }
}
