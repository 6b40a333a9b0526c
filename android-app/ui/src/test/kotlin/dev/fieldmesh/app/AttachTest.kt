package dev.fieldmesh.app

import android.Manifest
import android.app.Activity
import android.content.Intent
import android.content.pm.PackageManager
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.graphics.Color
import android.media.ExifInterface
import android.net.Uri
import android.os.ParcelFileDescriptor
import android.provider.MediaStore
import android.view.View
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.WireJson
import dev.fieldmesh.device.TakenPhoto
import org.junit.After
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ActivityController
import org.robolectric.annotation.Config
import org.robolectric.annotation.GraphicsMode
import org.robolectric.shadows.ShadowToast
import java.io.File
import java.io.FileNotFoundException
import java.time.Duration
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Photos and voice notes, from the touch of a button to what waits for the node. */
@RunWith(RobolectricTestRunner::class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class AttachTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private var activity: ActivityController<MainActivity>

    init {
        shadowOf(app.packageManager).setSystemFeature(PackageManager.FEATURE_CAMERA_ANY, true)
        shadowOf(app.packageManager).setSystemFeature(PackageManager.FEATURE_MICROPHONE, true)
        activity = open()
    }

    private fun open() = Robolectric.buildActivity(MainActivity::class.java).setup().also {
        it.get().findViewById<View>(R.id.tab_track).performClick()
    }

    @After
    fun end() {
        activity.pause().stop().destroy()
    }

    private fun tap(id: Int) = assertTrue(activity.get().findViewById<View>(id).performClick())

    private fun text(id: Int) = activity.get().findViewById<TextView>(id).text.toString()

    private fun pass(ms: Long = 0) = shadowOf(app.mainLooper).idleFor(Duration.ofMillis(ms))

    private fun grant(permission: String) = shadowOf(app).grantPermissions(permission)

    private val waiting get() = File(app.noBackupFilesDir, "attachments").listFiles().orEmpty().toList()

    /** The notes on the shelf. */
    private fun notes(): List<Note> = app.preferences.notes.load()?.let { text ->
        WireJson.parseToJsonElement(text).let { it as kotlinx.serialization.json.JsonArray }.map {
            val note = (it as kotlinx.serialization.json.JsonObject).getValue("note")
            WireJson.decodeFromJsonElement(Note.serializer(), note)
        }
    }.orEmpty()

    /** A photo of a sensor that lies on its side: red at the left, blue at the right, and with a place in its EXIF. */
    private fun shoot(into: File) {
        val picture = Bitmap.createBitmap(4000, 3000, Bitmap.Config.ARGB_8888)
        for (x in 0 until 4000 step 10) {
            for (y in 0 until 3000 step 1500) {
                val color = if (x < 2000) Color.RED else Color.BLUE
                picture.setPixels(IntArray(15_000) { color }, 0, 10, x, y, 10, 1500)
            }
        }
        into.parentFile?.mkdirs()
        into.outputStream().use { picture.compress(Bitmap.CompressFormat.JPEG, 90, it) }
        ExifInterface(into.path).apply {
            setAttribute(ExifInterface.TAG_ORIENTATION, "${ExifInterface.ORIENTATION_ROTATE_90}")
            setAttribute(ExifInterface.TAG_GPS_LATITUDE, "26/1,40/1,0/1")
            setAttribute(ExifInterface.TAG_GPS_LATITUDE_REF, "S")
            saveAttributes()
        }
    }

    private fun askedFor(): Intent = shadowOf(activity.get()).nextStartedActivityForResult.intent

    private fun answer(of: Intent, result: Int) {
        shadowOf(activity.get()).receiveResult(of, result, null)
        pass()
    }

    @Test
    fun `a photo is a mark with what was typed, of the moment of the touch, upright, small, and without its place`() {
        grant(Manifest.permission.CAMERA)
        activity.get().findViewById<EditText>(R.id.mark_text).setText(" the antenna ")
        tap(R.id.attach_photo)
        val asked = askedFor()
        assertEquals(MediaStore.ACTION_IMAGE_CAPTURE, asked.action)
        assertEquals(Intent.FLAG_GRANT_READ_URI_PERMISSION or Intent.FLAG_GRANT_WRITE_URI_PERMISSION, asked.flags)
        assertEquals(Uri.parse("content://dev.fieldmesh.app.taken/photo.jpg"), asked.clipData?.getItemAt(0)?.uri)
        shoot(TakenPhoto.file(app))
        answer(asked, Activity.RESULT_OK)
        val note = notes().single()
        assertEquals("the antenna", note.text)
        assertEquals("", text(R.id.mark_text))
        val file = waiting.single()
        assertEquals(note.attachment?.sha256, file.name)
        assertEquals(file.length().toInt(), note.attachment?.bytes)
        val kept = BitmapFactory.decodeFile(file.path)
        assertEquals(1200 to 1600, kept.width to kept.height)
        assertTrue(Color.red(kept.getPixel(600, 100)) > 200 && Color.blue(kept.getPixel(600, 1500)) > 200)
        assertNull(ExifInterface(file.path).getAttribute(ExifInterface.TAG_GPS_LATITUDE))
        assertEquals(emptyList(), TakenPhoto.file(app).parentFile?.list().orEmpty().toList())
        assertEquals("1 photo or recording waits: it is delivered between trials.", text(R.id.attach_waiting))
    }

    @Test
    fun `a photo of a process that ended while the camera was in front is kept`() {
        grant(Manifest.permission.CAMERA)
        tap(R.id.attach_photo)
        activity.pause().stop().destroy()
        app.die()
        shoot(TakenPhoto.file(app))
        activity = open()
        pass()
        assertEquals("Photo", notes().single().text)
        assertEquals(1, waiting.size)
        activity.pause().resume()
        pass()
        assertEquals(1, notes().size)
    }

    @Test
    fun `no photo makes no mark`() {
        grant(Manifest.permission.CAMERA)
        tap(R.id.attach_photo)
        answer(askedFor(), Activity.RESULT_CANCELED)
        tap(R.id.attach_photo)
        TakenPhoto.file(app).apply { parentFile?.mkdirs() }.writeText("no picture")
        answer(askedFor(), Activity.RESULT_OK)
        assertTrue(ShadowToast.getTextOfLatestToast().startsWith("Not kept: "))
        assertEquals(emptyList(), notes() + waiting)
    }

    @Test
    fun `without permission it is said, and nothing is begun`() {
        for ((button, permission, words) in listOf(
            Triple(R.id.attach_photo, Manifest.permission.CAMERA, R.string.attach_camera_denied),
            Triple(R.id.attach_voice, Manifest.permission.RECORD_AUDIO, R.string.attach_voice_denied),
        )) {
            tap(button)
            val asked = shadowOf(activity.get()).lastRequestedPermission
            assertEquals(listOf(permission), asked.requestedPermissions.toList())
            val no = intArrayOf(PackageManager.PERMISSION_DENIED)
            activity.get().onRequestPermissionsResult(asked.requestCode, asked.requestedPermissions, no)
            assertEquals(app.getString(words), ShadowToast.getTextOfLatestToast())
        }
        val started = generateSequence { shadowOf(activity.get()).nextStartedActivityForResult }
        assertTrue(started.none { it.intent.action == MediaStore.ACTION_IMAGE_CAPTURE })
        assertEquals(emptyList(), notes())
    }

    @Test
    fun `speech is recorded until the button, the minute's end, a fault, or another app ends it`() {
        grant(Manifest.permission.RECORD_AUDIO)
        val ends = listOf<() -> Unit>(
            { tap(R.id.attach_voice) },
            { pass(48_000) },
            { app.stuck() },
            { activity.pause().stop() },
        )
        ends.forEachIndexed { i, end ->
            app.spoken = byteArrayOf(1, 2, i.toByte())
            tap(R.id.attach_voice)
            pass(12_500)
            assertEquals("Stop, 12 s", text(R.id.attach_voice))
            end()
            pass()
            assertEquals("audio/mp4", notes()[i].attachment?.mediaType)
            assertEquals(i + 1, waiting.size)
        }
        activity.start().resume()
        pass()
        assertEquals("Voice", text(R.id.attach_voice))
        app.spoken = null
        tap(R.id.attach_voice)
        pass()
        assertEquals("Not kept: another app has the microphone", ShadowToast.getTextOfLatestToast())
    }

    @Test
    fun `the camera app may write one file, and no other is given`() {
        val provider = Robolectric.setupContentProvider(TakenPhoto::class.java, "dev.fieldmesh.app.taken")
        fun open(path: String) = provider.openFile(Uri.parse("content://dev.fieldmesh.app.taken/$path"), "w")
        ParcelFileDescriptor.AutoCloseOutputStream(open("photo.jpg")).use { it.write(1) }
        assertEquals(1, TakenPhoto.file(app).length())
        for (other in listOf("../attachments/a", "other.jpg", "taken/photo.jpg", "")) {
            assertFailsWith<FileNotFoundException>(other) { open(other) }
        }
    }
}
