package dev.fieldmesh.device

import android.content.ClipData
import android.content.ContentProvider
import android.content.ContentValues
import android.content.Context
import android.content.Intent
import android.database.Cursor
import android.database.MatrixCursor
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.graphics.Matrix
import android.media.ExifInterface
import android.net.Uri
import android.os.ParcelFileDescriptor
import android.provider.MediaStore
import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.Taken
import dev.fieldmesh.core.agent.UnusableException
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException

/** The files that the camera app may write, while it is asked for their photos: no other app, and no other file. */
class TakenPhoto : ContentProvider() {
    override fun onCreate() = true

    override fun getType(uri: Uri): String = MEDIA_TYPE

    override fun openFile(uri: Uri, mode: String): ParcelFileDescriptor {
        val attachments = (checkNotNull(context).applicationContext as LocationHost).preferences.attachments
        val asked = attachments.unready().find { it.mediaType == MEDIA_TYPE && uri.path == path(it) }
            ?: throw FileNotFoundException("$uri is no photo that is asked for")
        return ParcelFileDescriptor.open(attachments.file(asked), ParcelFileDescriptor.parseMode(mode))
    }

    override fun query(uri: Uri, wanted: Array<String>?, where: String?, with: Array<String>?, order: String?): Cursor =
        MatrixCursor(wanted ?: emptyArray())

    override fun insert(uri: Uri, values: ContentValues?) = throw UnsupportedOperationException()

    override fun update(uri: Uri, values: ContentValues?, where: String?, with: Array<String>?) =
        throw UnsupportedOperationException()

    override fun delete(uri: Uri, where: String?, with: Array<String>?) = throw UnsupportedOperationException()

    companion object {
        const val MEDIA_TYPE = "image/jpeg"
        private const val LONG_EDGE = 1600
        private val QUALITIES = listOf(80, 60, 40)

        private fun path(taken: Taken) = "/${taken.id}.jpg"

        /** Asks the phone's camera app for a photo. */
        fun ask(context: Context, taken: Taken): Intent {
            val uri = Uri.Builder().scheme("content").authority("${context.packageName}.taken")
                .path(path(taken)).build()
            return Intent(MediaStore.ACTION_IMAGE_CAPTURE).putExtra(MediaStore.EXTRA_OUTPUT, uri).apply {
                clipData = ClipData.newRawUri(null, uri)
                addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION or Intent.FLAG_GRANT_WRITE_URI_PERMISSION)
            }
        }

        /**
         * Writes a photo to another file, upright and with at most [LONG_EDGE] pixels on its long edge. Nothing else of
         * it is copied: not its place, time, or camera.
         */
        @Throws(IOException::class)
        fun scale(from: File, to: File) {
            val size = BitmapFactory.Options().apply { inJustDecodeBounds = true }
            BitmapFactory.decodeFile(from.path, size)
            val longEdge = maxOf(size.outWidth, size.outHeight)
            // Half of it while that is enough, so that a photo of 50 megapixels needs no memory for all of them.
            val coarse = BitmapFactory.Options().apply {
                inSampleSize = generateSequence(1) { it * 2 }.first { longEdge / (it * 2) < LONG_EDGE }
            }
            val read = BitmapFactory.decodeFile(from.path, coarse) ?: throw UnusableException("it is no photo")
            val scale = (LONG_EDGE.toFloat() / maxOf(read.width, read.height)).coerceAtMost(1f)
            val turned = Matrix().apply {
                postScale(scale, scale)
                postRotate(turnDeg(from))
            }
            val photo = Bitmap.createBitmap(read, 0, 0, read.width, read.height, turned, true)
            for (quality in QUALITIES) {
                // Bitmap's own way to say that a write failed.
                val isWhole = to.outputStream().use { photo.compress(Bitmap.CompressFormat.JPEG, quality, it) }
                if (!isWhole) throw IOException("write the photo: the phone's storage is full")
                if (to.length() <= Attachments.MOST_BYTES) return
            }
        }

        private fun turnDeg(photo: File): Float = when (
            ExifInterface(photo.path)
                .getAttributeInt(ExifInterface.TAG_ORIENTATION, ExifInterface.ORIENTATION_NORMAL)
        ) {
            ExifInterface.ORIENTATION_ROTATE_90 -> 90f
            ExifInterface.ORIENTATION_ROTATE_180 -> 180f
            ExifInterface.ORIENTATION_ROTATE_270 -> 270f
            else -> 0f
        }
    }
}
